-- How many threads there are; answered from the primary key's index.
SELECT count(DISTINCT thread_id) FROM checkpoints;
