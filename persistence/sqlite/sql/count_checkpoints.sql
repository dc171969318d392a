-- How many checkpoints a thread has, in all its namespaces.
SELECT count(*) FROM checkpoints WHERE thread_id = ?;
