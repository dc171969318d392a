-- A thread's checkpoints, newest first, without the values they rest on. The plus keeps SQLite from walking through all
-- threads, newest first, until enough of this one were met.
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, CAST(checkpoint AS BLOB), CAST(metadata AS BLOB)
FROM checkpoints
WHERE thread_id = :thread_id
ORDER BY +checkpoint_id DESC, checkpoint_ns DESC
LIMIT :limit;
