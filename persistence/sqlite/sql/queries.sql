-- put_checkpoint --
-- Store a checkpoint, replacing the one with its key.
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    parent_checkpoint_id = excluded.parent_checkpoint_id,
    type = excluded.type,
    checkpoint = excluded.checkpoint,
    metadata = excluded.metadata;

-- keep_blob --
-- Store a channel's value unless its version is stored already.
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- keep_write --
-- Store a task's write unless the task has written there already: the first result wins.
INSERT INTO checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING;

-- put_write --
-- Store a write to a special channel, replacing what was there.
INSERT INTO checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    channel = excluded.channel, type = excluded.type, blob = excluded.blob, task_path = excluded.task_path;

-- head --
-- The greatest checkpoint id of a thread and namespace; NULL if there is none.
SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?;

-- heads --
-- Likewise for each [thread_id, checkpoint_ns] of a JSON array, in its order.
SELECT (
    SELECT max(checkpoint_id) FROM checkpoints
    WHERE thread_id = json_extract(place.value, '$[0]') AND checkpoint_ns = json_extract(place.value, '$[1]')
)
FROM json_each(?) AS place
ORDER BY place.key;

-- holds --
-- Whether a checkpoint is stored.
SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?;

-- newest_checkpoint --
-- The checkpoint with the greatest id of a thread and namespace.
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
    CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ?
ORDER BY checkpoint_id DESC
LIMIT 1;

-- one_checkpoint --
-- The checkpoint with this key.
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
    CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?;

-- page_of_checkpoints --
-- Checkpoints in listing order; the conditions are chosen from a fixed set, every value is bound.
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
    CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints
WHERE {conditions}
ORDER BY {checkpoint_id} DESC, thread_id DESC, checkpoint_ns DESC
LIMIT :limit;

-- rows_of_checkpoints --
-- All writes of some checkpoints, and all blobs they rest on, in one go; keys arrive as two JSON lists.
SELECT w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.blob, w.task_path
FROM json_each(:checkpoints) AS k
CROSS JOIN checkpoint_writes AS w
    ON w.thread_id = json_extract(k.value, '$[0]')
    AND w.checkpoint_ns = json_extract(k.value, '$[1]')
    AND w.checkpoint_id = json_extract(k.value, '$[2]')
UNION ALL
SELECT b.thread_id, b.checkpoint_ns, b.channel, b.version, NULL, NULL, b.type, b.blob, NULL
FROM json_each(:blobs) AS k
CROSS JOIN checkpoint_blobs AS b
    ON b.thread_id = json_extract(k.value, '$[0]')
    AND b.checkpoint_ns = json_extract(k.value, '$[1]')
    AND b.channel = json_extract(k.value, '$[2]')
    AND b.version = json_extract(k.value, '$[3]');

-- delete_checkpoints --
-- Delete every checkpoint of a thread.
DELETE FROM checkpoints WHERE thread_id = ?;

-- delete_writes --
-- Delete every write of a thread.
DELETE FROM checkpoint_writes WHERE thread_id = ?;

-- delete_blobs --
-- Delete every blob of a thread.
DELETE FROM checkpoint_blobs WHERE thread_id = ?;

-- copy_checkpoints --
-- Copy a thread's checkpoints; what the target has stays.
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = :source
ON CONFLICT DO NOTHING;

-- copy_writes --
-- Copy a thread's writes; what the target has stays.
INSERT INTO checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
SELECT :target, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
FROM checkpoint_writes WHERE thread_id = :source
ON CONFLICT DO NOTHING;

-- copy_blobs --
-- Copy a thread's blobs; what the target has stays.
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT :target, checkpoint_ns, channel, version, type, blob
FROM checkpoint_blobs WHERE thread_id = :source
ON CONFLICT DO NOTHING;

-- all_writes --
-- Every write of a thread, for rows that must be sealed again for their copy.
SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
FROM checkpoint_writes WHERE thread_id = ?;

-- all_blobs --
-- Every blob of a thread, for rows that must be sealed again for their copy.
SELECT thread_id, checkpoint_ns, channel, version, type, blob
FROM checkpoint_blobs WHERE thread_id = ?;

-- keep_newest_checkpoints --
-- Delete all but the newest checkpoint of each namespace of a thread.
DELETE FROM checkpoints
WHERE thread_id = :thread_id AND checkpoint_id < (
    SELECT max(newer.checkpoint_id) FROM checkpoints AS newer
    WHERE newer.thread_id = :thread_id AND newer.checkpoint_ns = checkpoints.checkpoint_ns
);

-- namespaces --
-- Every namespace a thread has rows in.
SELECT checkpoint_ns FROM checkpoints WHERE thread_id = :thread_id
UNION SELECT checkpoint_ns FROM checkpoint_writes WHERE thread_id = :thread_id
UNION SELECT checkpoint_ns FROM checkpoint_blobs WHERE thread_id = :thread_id;

-- checkpoints_of_runs --
-- Keys of the checkpoints that one of these runs made.
SELECT thread_id, checkpoint_ns, checkpoint_id
FROM checkpoints
WHERE metadata_run_id(CAST(metadata AS BLOB)) IN (SELECT value FROM json_each(?));

-- delete_checkpoint --
-- Delete one checkpoint.
DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?;

-- delete_orphaned_writes --
-- Delete the writes of a namespace whose checkpoint is gone.
DELETE FROM checkpoint_writes
WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id NOT IN (
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns
);

-- kept_checkpoints --
-- The checkpoints of a namespace, to learn which blobs they rest on.
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,
    CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?;

-- blob_keys --
-- The blobs of a namespace.
SELECT thread_id, checkpoint_ns, channel, version
FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ?;

-- delete_blob --
-- Delete one blob.
DELETE FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ? AND channel = ? AND version = ?;

-- applied_migrations --
-- Numbers of the migrations that this database has seen.
SELECT v FROM checkpoint_migrations;

-- note_migration --
-- Remember that a migration was applied.
INSERT INTO checkpoint_migrations (v) VALUES (?);

-- grow_log_table --
-- A table that is never committed: what is written to it lengthens the log.
CREATE TABLE _log_room (room BLOB);

-- grow_log --
-- Write a blob of this many zero bytes.
INSERT INTO _log_room (room) VALUES (zeroblob(?));

-- lease --
-- A thread's lease: who showed it last, and under which epoch.
SELECT epoch, owner FROM checkpoint_leases WHERE thread_id = ?;

-- leases --
-- Likewise for each thread id of a JSON array.
SELECT thread_id, epoch, owner FROM checkpoint_leases WHERE thread_id IN (SELECT value FROM json_each(?));

-- put_lease --
-- Note who holds a thread.
INSERT INTO checkpoint_leases (thread_id, epoch, owner, graph, held)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    epoch = excluded.epoch, owner = excluded.owner, graph = excluded.graph, held = excluded.held;

-- seen_lease --
-- A thread's lease with the seconds until its owner counts as dead: never more than its owner asked for, so that a
-- clock that was set back does not keep the dead alive.
SELECT l.thread_id, l.epoch, l.owner, l.graph, l.held, coalesce(
    min(o.seconds, o.expires_at - (julianday('now') - 2440587.5) * 86400.0), 0.0
)
FROM checkpoint_leases AS l
LEFT JOIN checkpoint_owners AS o USING (owner)
WHERE l.thread_id = ?;

-- held_leases --
-- Likewise for every thread that is held.
SELECT l.thread_id, l.epoch, l.owner, l.graph, l.held, coalesce(
    min(o.seconds, o.expires_at - (julianday('now') - 2440587.5) * 86400.0), 0.0
)
FROM checkpoint_leases AS l
LEFT JOIN checkpoint_owners AS o USING (owner)
WHERE l.held
ORDER BY l.thread_id;

-- free_leases --
-- Likewise for threads of a graph that are not held, from behind a thread id on.
SELECT l.thread_id, l.epoch, l.owner, l.graph, l.held, 0.0
FROM checkpoint_leases AS l
WHERE NOT l.held AND l.graph = ? AND l.thread_id > ?
ORDER BY l.thread_id
LIMIT ?;

-- delete_lease --
-- Forget a thread's lease: whoever holds it cannot write any more.
DELETE FROM checkpoint_leases WHERE thread_id = ?;

-- beat --
-- Note that an owner lives.
INSERT INTO checkpoint_owners (owner, expires_at, seconds)
VALUES (:owner, (julianday('now') - 2440587.5) * 86400.0 + :seconds, :seconds)
ON CONFLICT DO UPDATE SET expires_at = excluded.expires_at, seconds = excluded.seconds;

-- forget_owner --
-- Take an owner off the list, and with it those that have been silent for a day.
DELETE FROM checkpoint_owners
WHERE owner = :owner OR expires_at < (julianday('now') - 2440587.5) * 86400.0 - 86400.0;
