-- The tasks that wrote against a checkpoint, each with the indices of its rows: below zero are the special channels.
SELECT task_id, task_path, json_group_array(idx)
FROM checkpoint_writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
GROUP BY task_id, task_path
ORDER BY task_path, task_id;
