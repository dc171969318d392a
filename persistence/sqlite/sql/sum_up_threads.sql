-- Threads, named in a JSON list, each with its newest checkpoint: the main namespace's, or else the newest of all, and
-- for each task that wrote against that one the indices of its rows.
WITH summaries AS (
    SELECT
        l.key AS place,
        c.thread_id,
        count(*) AS checkpoints,
        count(DISTINCT c.checkpoint_ns) AS namespaces,
        min(c.checkpoint_ns) AS newest_ns
    FROM json_each(:threads) AS l
    CROSS JOIN checkpoints AS c ON c.thread_id = l.value
    GROUP BY l.key, c.thread_id
)
SELECT
    s.thread_id, s.namespaces, s.checkpoints, n.checkpoint_ns, n.checkpoint_id, n.parent_checkpoint_id,
    CAST(n.checkpoint AS BLOB), CAST(n.metadata AS BLOB),
    (
        SELECT json_group_array(json(t.indices))
        FROM (
            SELECT json_group_array(w.idx) AS indices
            FROM checkpoint_writes AS w
            WHERE w.thread_id = n.thread_id AND w.checkpoint_ns = n.checkpoint_ns AND w.checkpoint_id = n.checkpoint_id
            GROUP BY w.task_id
        ) AS t
    )
FROM summaries AS s
CROSS JOIN checkpoints AS n
    ON n.thread_id = s.thread_id
    AND n.checkpoint_ns = s.newest_ns
    AND n.checkpoint_id = (
        SELECT max(checkpoint_id) FROM checkpoints
        WHERE thread_id = s.thread_id AND checkpoint_ns = s.newest_ns
    )
ORDER BY s.place;
