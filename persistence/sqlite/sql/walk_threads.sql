-- The threads of the newest checkpoints, one row a checkpoint; read only as far as is needed.
SELECT thread_id FROM checkpoints ORDER BY checkpoint_id DESC, thread_id DESC;
