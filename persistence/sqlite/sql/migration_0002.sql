-- Listing all threads together, newest first. Ids grow with time, so its pages fill one after the other.

CREATE INDEX checkpoints_checkpoint_id_idx ON checkpoints (checkpoint_id, thread_id, checkpoint_ns);
