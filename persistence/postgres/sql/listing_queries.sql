-- newest_threads --
-- The threads that were active last, found by walking back from the newest checkpoint; with the indices of the rows of
-- each task that wrote against the checkpoint that is told.
WITH RECURSIVE walked AS (
    (
        SELECT checkpoint_id AS activity, thread_id, ARRAY[thread_id] AS seen
        FROM checkpoints
        ORDER BY checkpoint_id DESC, thread_id DESC
        LIMIT 1
    )
    UNION ALL
    SELECT c.checkpoint_id, c.thread_id, w.seen || c.thread_id
    FROM walked AS w
    CROSS JOIN LATERAL (
        SELECT o.checkpoint_id, o.thread_id
        FROM checkpoints AS o
        WHERE (o.checkpoint_id, o.thread_id) < (w.activity, w.thread_id) AND o.thread_id <> ALL (w.seen)
        ORDER BY o.checkpoint_id DESC, o.thread_id DESC
        LIMIT 1
    ) AS c
), listed AS (
    SELECT activity, thread_id FROM walked LIMIT $1::bigint
)
SELECT s.thread_id, s.namespaces, s.checkpoints, n.checkpoint_ns, n.checkpoint_id, n.parent_checkpoint_id,
    n.checkpoint::text, n.metadata::text,
    (
        SELECT json_agg(t.indices)::text
        FROM (
            SELECT json_agg(w.idx) AS indices
            FROM checkpoint_writes AS w
            WHERE w.thread_id = n.thread_id AND w.checkpoint_ns = n.checkpoint_ns AND w.checkpoint_id = n.checkpoint_id
            GROUP BY w.task_id
        ) AS t
    )
FROM listed AS l
CROSS JOIN LATERAL (
    SELECT o.thread_id, count(*) AS checkpoints, count(DISTINCT o.checkpoint_ns) AS namespaces,
        min(o.checkpoint_ns) AS newest_ns
    FROM checkpoints AS o
    WHERE o.thread_id = l.thread_id
    GROUP BY o.thread_id
) AS s
CROSS JOIN LATERAL (
    SELECT * FROM checkpoints AS o
    WHERE o.thread_id = s.thread_id AND o.checkpoint_ns = s.newest_ns
    ORDER BY o.checkpoint_id DESC
    LIMIT 1
) AS n
ORDER BY l.activity DESC, l.thread_id DESC;

-- threads --
-- Every thread with its newest checkpoint: the main namespace's, or else the newest of all. The last active first.
WITH summaries AS (
    SELECT thread_id, count(*) AS checkpoints, count(DISTINCT checkpoint_ns) AS namespaces,
        min(checkpoint_ns) AS newest_ns, max(checkpoint_id) AS activity
    FROM checkpoints
    GROUP BY thread_id
)
SELECT s.thread_id, s.namespaces, s.checkpoints, n.checkpoint_ns, n.checkpoint_id, n.parent_checkpoint_id,
    n.checkpoint::text, n.metadata::text,
    (
        SELECT json_agg(t.indices)::text
        FROM (
            SELECT json_agg(w.idx) AS indices
            FROM checkpoint_writes AS w
            WHERE w.thread_id = n.thread_id AND w.checkpoint_ns = n.checkpoint_ns AND w.checkpoint_id = n.checkpoint_id
            GROUP BY w.task_id
        ) AS t
    )
FROM summaries AS s
CROSS JOIN LATERAL (
    SELECT * FROM checkpoints AS o
    WHERE o.thread_id = s.thread_id AND o.checkpoint_ns = s.newest_ns
    ORDER BY o.checkpoint_id DESC
    LIMIT 1
) AS n
ORDER BY s.activity DESC, s.thread_id DESC;

-- count_threads --
-- How many threads there are: one step in the primary key's index for each.
WITH RECURSIVE walked AS (
    SELECT min(thread_id) AS thread_id FROM checkpoints
    UNION ALL
    SELECT (SELECT min(o.thread_id) FROM checkpoints AS o WHERE o.thread_id > w.thread_id)
    FROM walked AS w
    WHERE w.thread_id IS NOT NULL
)
SELECT count(thread_id) FROM walked;

-- count_checkpoints --
-- How many checkpoints a thread has, in all its namespaces.
SELECT count(*) FROM checkpoints WHERE thread_id = $1;

-- thread_bytes --
-- Bytes of what a thread's rows hold, as they are stored.
SELECT
    (SELECT coalesce(sum(pg_column_size(checkpoint) + pg_column_size(metadata)), 0)
        FROM checkpoints WHERE thread_id = $1)
    + (SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_writes WHERE thread_id = $1)
    + (SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_blobs WHERE thread_id = $1);

-- checkpoints --
-- A thread's checkpoints, newest first, without the values they rest on.
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint::text, metadata::text
FROM checkpoints
WHERE thread_id = $1
ORDER BY checkpoint_id DESC, checkpoint_ns DESC
LIMIT $2::bigint;

-- tasks --
-- The tasks that wrote against a checkpoint, each with the indices of its rows: below zero are the special channels.
SELECT task_id, task_path, array_agg(idx)
FROM checkpoint_writes
WHERE thread_id = $1 AND checkpoint_ns = $2 AND checkpoint_id = $3
GROUP BY task_id, task_path
ORDER BY task_path, task_id;
