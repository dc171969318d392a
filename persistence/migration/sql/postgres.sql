-- tables --
-- Which of LangGraph's tables there are, with their columns.
SELECT c.relname::text AS table_name, array_agg(a.attname::text) AS columns
FROM unnest(ARRAY['checkpoints', 'checkpoint_blobs', 'checkpoint_writes', 'store', 'store_vectors']) AS wanted (name)
JOIN pg_class AS c ON c.oid = to_regclass(wanted.name)
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
GROUP BY c.relname;

-- our_checkpoint --
-- A checkpoint of this project, which says how it is written; LangGraph's say nothing. The tables have the same columns.
SELECT 1 AS present FROM checkpoints WHERE type LIKE 'json:%' LIMIT 1;

-- threads --
-- Every thread and how many checkpoints it has.
SELECT thread_id, count(*) AS number FROM checkpoints GROUP BY thread_id ORDER BY thread_id COLLATE "C";

-- heads --
-- The newest checkpoint of each namespace.
SELECT checkpoint_ns, max(checkpoint_id COLLATE "C") AS head
FROM checkpoints
WHERE thread_id = $1
GROUP BY checkpoint_ns;

-- checkpoints --
-- The checkpoints of a namespace that follow one, oldest first.
SELECT checkpoint_id, parent_checkpoint_id, checkpoint::text AS body, metadata::text AS metadata
FROM checkpoints
WHERE (thread_id, checkpoint_ns) = ($1, $2) AND checkpoint_id IN (
    SELECT checkpoint_id
    FROM checkpoints
    WHERE (thread_id, checkpoint_ns) = ($1, $2) AND checkpoint_id COLLATE "C" > $3
    ORDER BY checkpoint_id COLLATE "C"
    LIMIT $4
)
ORDER BY checkpoint_id COLLATE "C";

-- blobs --
-- Values by channel and version.
SELECT b.channel, b.version, b.type, b.blob
FROM checkpoint_blobs AS b
JOIN unnest($3::text[], $4::text[]) AS wanted (channel, version)
    ON (b.channel, b.version) = (wanted.channel, wanted.version)
WHERE (b.thread_id, b.checkpoint_ns) = ($1, $2);

-- writes --
-- What was written against some checkpoints.
SELECT checkpoint_id, task_id, task_path, channel, type, blob
FROM checkpoint_writes
WHERE (thread_id, checkpoint_ns) = ($1, $2) AND checkpoint_id = ANY ($3::text[])
ORDER BY checkpoint_id COLLATE "C", task_path COLLATE "C", task_id COLLATE "C", idx;

-- writes_without_path --
-- The same in databases from before tasks had a path.
SELECT checkpoint_id, task_id, '' AS task_path, channel, type, blob
FROM checkpoint_writes
WHERE (thread_id, checkpoint_ns) = ($1, $2) AND checkpoint_id = ANY ($3::text[])
ORDER BY checkpoint_id COLLATE "C", task_id COLLATE "C", idx;

-- item_count --
-- How many items the store holds.
SELECT count(*) AS number FROM store;

-- vector_count --
-- Whether items are indexed.
SELECT EXISTS (SELECT 1 FROM store_vectors) AS present;

-- items --
-- Items in the order of their creation.
SELECT prefix, key, value::text AS value,
    extract(epoch FROM created_at)::float8 AS created_at, extract(epoch FROM updated_at)::float8 AS updated_at,
    extract(epoch FROM expires_at)::float8 AS expires_at, ttl_minutes::float8 AS ttl
FROM store
ORDER BY created_at, prefix COLLATE "C", key COLLATE "C"
LIMIT $2 OFFSET $1;

-- items_without_expiry --
-- The same in databases from before items expired.
SELECT prefix, key, value::text AS value,
    extract(epoch FROM created_at)::float8 AS created_at, extract(epoch FROM updated_at)::float8 AS updated_at,
    NULL::float8 AS expires_at, NULL::float8 AS ttl
FROM store
ORDER BY created_at, prefix COLLATE "C", key COLLATE "C"
LIMIT $2 OFFSET $1;
