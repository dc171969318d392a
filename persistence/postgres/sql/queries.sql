-- commit --
-- Store a batch of units; see the function.
SELECT refused, head FROM checkpoint_commit_3($1::text::jsonb, $2, $3, $4);

-- holds --
-- One row, if a checkpoint is stored.
SELECT 1 FROM checkpoints WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3;

-- page --
-- Checkpoints with all their writes and the blobs they rest on, from one state of the database and in one answer.
-- The source and the conditions are chosen from a fixed set, every value is bound. A name that holds U+E000 stands
-- escaped inside JSON and plain in its own column.
WITH found AS MATERIALIZED (
    SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM {source}
    WHERE {conditions}
    ORDER BY checkpoint_id DESC, thread_id DESC, checkpoint_ns DESC
    LIMIT $1
), held AS (
    SELECT DISTINCT f.thread_id, f.checkpoint_ns,
        replace(r.name, U&'\E0001', U&'\E000') AS channel,
        replace(coalesce(m.mark ->> 1, f.checkpoint -> 'channel_versions' ->> r.name), U&'\E0001', U&'\E000') AS version
    FROM found AS f
    CROSS JOIN LATERAL jsonb_array_elements_text(
        CASE jsonb_typeof(f.checkpoint -> 'rows') WHEN 'array' THEN f.checkpoint -> 'rows' END
    ) AS r (name)
    LEFT JOIN LATERAL jsonb_array_elements(
        CASE jsonb_typeof(f.checkpoint -> 'lineage' -> r.name)
            WHEN 'array' THEN f.checkpoint -> 'lineage' -> r.name
        END
    ) AS m (mark) ON true
)
SELECT 'checkpoint' AS what, thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, NULL::integer AS idx,
    NULL AS channel, type, NULL::bytea AS blob, checkpoint::text AS body, metadata::text AS facts
FROM found
UNION ALL
SELECT 'write', w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.channel, w.type, w.blob,
    w.task_path, NULL
FROM found AS f
CROSS JOIN LATERAL (
    SELECT * FROM checkpoint_writes AS o
    WHERE o.thread_id = f.thread_id AND o.checkpoint_ns = f.checkpoint_ns AND o.checkpoint_id = f.checkpoint_id
    OFFSET 0
) AS w
UNION ALL
SELECT 'blob', b.thread_id, b.checkpoint_ns, b.channel, b.version, NULL, NULL, b.type, b.blob, NULL, NULL
FROM held AS h
CROSS JOIN LATERAL (
    SELECT * FROM checkpoint_blobs AS o
    WHERE o.thread_id = h.thread_id AND o.checkpoint_ns = h.checkpoint_ns
        AND o.channel = h.channel AND o.version = h.version
    OFFSET 0
) AS b;

-- lock_threads --
-- Wait for whoever moves some threads, and keep others waiting: what is compared with a head stands until it is stored.
SELECT pg_advisory_xact_lock(place.lock)
FROM (
    SELECT hashtextextended(thread_id || chr(31) || checkpoint_ns, 7419) AS lock
    FROM checkpoints WHERE thread_id = ANY ($1::text[])
    UNION
    SELECT hashtextextended(thread_id, 7420) FROM unnest($1::text[]) AS given (thread_id)
    ORDER BY lock
) AS place;

-- lock_runs --
-- The same for the threads that some runs made checkpoints in.
SELECT pg_advisory_xact_lock(place.lock)
FROM (
    SELECT DISTINCT hashtextextended(thread_id || chr(31) || checkpoint_ns, 7419) AS lock
    FROM checkpoints WHERE metadata -> 'run_id' = ANY ($1::text[]::jsonb[])
    ORDER BY lock
) AS place;

-- delete_thread --
-- Delete everything of some threads.
WITH checkpoint AS (DELETE FROM checkpoints WHERE thread_id = ANY ($1::text[])),
    written AS (DELETE FROM checkpoint_writes WHERE thread_id = ANY ($1::text[])),
    leased AS (DELETE FROM checkpoint_leases WHERE thread_id = ANY ($1::text[]))
DELETE FROM checkpoint_blobs WHERE thread_id = ANY ($1::text[]);

-- copy_thread --
-- Copy a thread's rows to another, as one state of the database holds them; what the target has stays.
WITH checkpoint AS (
    INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT $2::text, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = $1
    ON CONFLICT DO NOTHING
), written AS (
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
    SELECT $2::text, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
    FROM checkpoint_writes WHERE thread_id = $1
    ON CONFLICT DO NOTHING
)
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
SELECT $2::text, checkpoint_ns, channel, version, type, blob
FROM checkpoint_blobs WHERE thread_id = $1
ON CONFLICT DO NOTHING;

-- copy_checkpoints --
-- Copy a thread's checkpoints alone and return its other rows, which must be sealed again for their copy.
WITH checkpoint AS (
    INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
    SELECT $2::text, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
    FROM checkpoints WHERE thread_id = $1
    ON CONFLICT DO NOTHING
)
SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
FROM checkpoint_writes WHERE thread_id = $1
UNION ALL
SELECT thread_id, checkpoint_ns, channel, version, NULL, NULL, type, blob, NULL
FROM checkpoint_blobs WHERE thread_id = $1;

-- keep_newest_checkpoints --
-- Delete all but the newest checkpoint of each namespace of some threads; return every namespace they have rows in.
WITH old AS (
    DELETE FROM checkpoints AS c
    WHERE c.thread_id = ANY ($1::text[]) AND c.checkpoint_id < (
        SELECT max(n.checkpoint_id) FROM checkpoints AS n
        WHERE n.thread_id = c.thread_id AND n.checkpoint_ns = c.checkpoint_ns
    )
)
SELECT thread_id, checkpoint_ns FROM checkpoints WHERE thread_id = ANY ($1::text[])
UNION SELECT thread_id, checkpoint_ns FROM checkpoint_writes WHERE thread_id = ANY ($1::text[])
UNION SELECT thread_id, checkpoint_ns FROM checkpoint_blobs WHERE thread_id = ANY ($1::text[]);

-- delete_runs --
-- Delete the checkpoints that one of these runs made; return the namespaces they were in.
WITH gone AS (
    DELETE FROM checkpoints WHERE metadata -> 'run_id' = ANY ($1::text[]::jsonb[])
    RETURNING thread_id, checkpoint_ns
)
SELECT DISTINCT thread_id, checkpoint_ns FROM gone;

-- delete_orphaned_writes --
-- Delete the writes of some namespaces whose checkpoint is gone.
DELETE FROM checkpoint_writes AS w
USING unnest($1::text[], $2::text[]) AS p (thread, ns)
WHERE w.thread_id = p.thread AND w.checkpoint_ns = p.ns AND NOT EXISTS (
    SELECT FROM checkpoints AS c
    WHERE c.thread_id = w.thread_id AND c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id
);

-- kept --
-- The checkpoints and the blob keys of some namespaces, from one state of the database.
SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id AS name, NULL AS version, c.type, c.checkpoint::text AS body
FROM unnest($1::text[], $2::text[]) AS p (thread, ns)
JOIN checkpoints AS c ON c.thread_id = p.thread AND c.checkpoint_ns = p.ns
UNION ALL
SELECT b.thread_id, b.checkpoint_ns, b.channel, b.version, NULL, NULL
FROM unnest($1::text[], $2::text[]) AS p (thread, ns)
JOIN checkpoint_blobs AS b ON b.thread_id = p.thread AND b.checkpoint_ns = p.ns;

-- delete_blobs --
-- Delete some blobs.
DELETE FROM checkpoint_blobs AS b
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS d (thread, ns, channel, version)
WHERE b.thread_id = d.thread AND b.checkpoint_ns = d.ns AND b.channel = d.channel AND b.version = d.version;

-- lock_migrations --
-- Let one session at a time look and change; others wait.
SELECT pg_advisory_xact_lock($1);

-- columns --
-- The columns of some tables, as the names are looked up in this session, in their order.
SELECT t.name, coalesce(array_agg(a.attname::text ORDER BY a.attnum), '{}') AS columns
FROM unnest($1::text[]) AS t (name)
JOIN pg_attribute AS a ON a.attrelid = to_regclass(t.name) AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY t.name;

-- lease --
-- A thread's lease with the seconds until its owner counts as dead: never more than its owner asked for, so that a
-- clock that was set back does not keep the dead alive. In the columns of a page, whose last part it can be.
SELECT 'lease', l.thread_id, l.owner, l.graph, l.held::text, NULL::integer, NULL, NULL, NULL::bytea, l.epoch::text,
    coalesce(least(o.seconds, extract(epoch FROM o.expires_at - clock_timestamp())::float8), 0)::text
FROM checkpoint_leases AS l
LEFT JOIN checkpoint_owners AS o USING (owner)
WHERE {conditions}
