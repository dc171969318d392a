-- A thread's checkpoints, newest first, without the values they rest on.
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints
WHERE thread_id = :thread_id
ORDER BY checkpoint_id DESC, checkpoint_ns DESC
LIMIT :limit;
