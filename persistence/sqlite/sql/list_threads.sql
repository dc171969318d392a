-- Every thread with its newest checkpoint: the main namespace's, or else the newest of all. Newest thread first.
-- Keys come from the primary key's index alone; a checkpoint's content is read for the listed threads only.
WITH summaries AS (
    SELECT
        thread_id,
        count(*) AS checkpoints,
        count(DISTINCT checkpoint_ns) AS namespaces,
        min(checkpoint_ns) AS newest_ns,
        max(checkpoint_id) AS activity
    FROM checkpoints
    GROUP BY thread_id
    ORDER BY activity DESC, thread_id DESC
    LIMIT :limit
)
SELECT
    s.thread_id, s.namespaces, s.checkpoints, n.checkpoint_ns, n.checkpoint_id, n.parent_checkpoint_id,
    CAST(n.checkpoint AS BLOB), CAST(n.metadata AS BLOB)
FROM summaries AS s
CROSS JOIN checkpoints AS n
    ON n.thread_id = s.thread_id
    AND n.checkpoint_ns = s.newest_ns
    AND n.checkpoint_id = (
        SELECT max(checkpoint_id) FROM checkpoints
        WHERE thread_id = s.thread_id AND checkpoint_ns = s.newest_ns
    )
ORDER BY s.activity DESC, s.thread_id DESC;
