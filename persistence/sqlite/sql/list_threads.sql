-- Every thread, the last active first; from the primary key's index alone.
SELECT thread_id, max(checkpoint_id) AS activity
FROM checkpoints
GROUP BY thread_id
ORDER BY activity DESC, thread_id DESC;
