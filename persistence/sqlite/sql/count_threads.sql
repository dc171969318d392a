-- How many threads there are: one step in the primary key's index for each.
WITH RECURSIVE walked AS (
    SELECT min(thread_id) AS thread_id FROM checkpoints
    UNION ALL
    SELECT (SELECT min(o.thread_id) FROM checkpoints AS o WHERE o.thread_id > w.thread_id)
    FROM walked AS w
    WHERE w.thread_id IS NOT NULL
)
SELECT count(thread_id) FROM walked;
