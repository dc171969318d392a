-- Bytes of what a thread's rows hold.
SELECT
    (SELECT coalesce(sum(length(CAST(checkpoint AS BLOB)) + length(CAST(metadata AS BLOB))), 0)
        FROM checkpoints WHERE thread_id = :thread_id)
    + (SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_writes WHERE thread_id = :thread_id)
    + (SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_blobs WHERE thread_id = :thread_id);
