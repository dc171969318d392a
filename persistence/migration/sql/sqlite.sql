-- tables --
-- Which of LangGraph's tables there are, with their columns.
SELECT m.name, group_concat(c.name)
FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
WHERE m.type = 'table' AND m.name IN ('checkpoints', 'writes', 'store', 'store_vectors')
GROUP BY m.name;

-- threads --
-- Every thread and how many checkpoints it has.
SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY thread_id;

-- heads --
-- The newest checkpoint of each namespace.
SELECT checkpoint_ns, max(checkpoint_id) FROM checkpoints WHERE thread_id = ? GROUP BY checkpoint_ns;

-- checkpoints --
-- The checkpoints of a namespace that follow one, oldest first.
SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id > ?
ORDER BY checkpoint_id
LIMIT ?;

-- writes --
-- What was written against one checkpoint.
SELECT task_id, task_path, channel, type, value
FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
ORDER BY task_path, task_id, idx;

-- writes_without_path --
-- The same in files from before tasks had a path.
SELECT task_id, '' AS task_path, channel, type, value
FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
ORDER BY task_id, idx;

-- item_count --
-- How many items the store holds.
SELECT count(*) FROM store;

-- vector_count --
-- Whether items are indexed.
SELECT EXISTS (SELECT 1 FROM store_vectors);

-- items --
-- Items in the order of their creation.
SELECT prefix, key, value, created_at, updated_at, expires_at, ttl_minutes
FROM store
ORDER BY created_at, prefix, key
LIMIT ?2 OFFSET ?1;

-- items_without_expiry --
-- The same in files from before items expired.
SELECT prefix, key, value, created_at, updated_at, NULL, NULL
FROM store
ORDER BY created_at, prefix, key
LIMIT ?2 OFFSET ?1;
