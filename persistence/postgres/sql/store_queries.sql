-- find --
-- The items of some addresses that have not expired.
SELECT s.id, s.namespace, s.key, s.type, s.value, s.created_at, s.updated_at, s.ttl_minutes, s.expires_at
FROM unnest($1::text[], $2::text[]) AS a (namespace, key)
JOIN store AS s ON s.namespace = a.namespace AND s.key = a.key
WHERE s.expires_at IS NULL OR s.expires_at > $3::double precision;

-- rows --
-- Items in the order of creation; the conditions are chosen from a fixed set, every value is bound.
SELECT s.id, s.namespace, s.key, s.type, s.value, s.created_at, s.updated_at, s.ttl_minutes, s.expires_at
FROM store AS s
WHERE {conditions}
ORDER BY s.id
LIMIT $1::bigint OFFSET $2::bigint;

-- nearest --
-- Items by their distance to a vector, once for each of their own. Within the table's index the order is found, not made.
SELECT s.id, s.namespace, s.key, s.type, s.value, s.created_at, s.updated_at, s.ttl_minutes, s.expires_at,
    v.embedding::vector({dims}) <#> $2::text::vector({dims}) AS distance
FROM store_vectors AS v
JOIN store AS s ON s.id = v.item
WHERE v.dims = {dims} AND s.dims = {dims} AND {conditions}
ORDER BY {order}
LIMIT $1::bigint;

-- candidates --
-- Items with the sealed vectors that they were indexed by.
SELECT s.id, s.namespace, s.key, s.type, s.value, s.created_at, s.updated_at, s.ttl_minutes, s.expires_at,
    v.type, v.vectors
FROM store AS s
LEFT JOIN store_sealed_vectors AS v ON v.item = s.id AND s.dims = $1::integer
WHERE {conditions};

-- namespaces --
-- The namespaces that hold items.
SELECT DISTINCT s.namespace FROM store AS s WHERE {conditions};

-- put --
-- Store items; what an address holds keeps its number and creation time, unless it has expired.
INSERT INTO store AS s
    (namespace, key, type, value, plain, opaque, ttl_minutes, expires_at, dims, created_at, updated_at)
SELECT n.namespace, n.key, n.type, n.value, n.plain::jsonb, n.opaque::jsonb, n.ttl, n.expires, n.dims, $9, $9
FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::double precision[],
    $8::double precision[], $11::integer[]) AS n (namespace, key, type, value, plain, opaque, ttl, expires, dims)
ON CONFLICT (namespace, key) DO UPDATE SET
    id = CASE WHEN s.expires_at <= $10::double precision THEN excluded.id ELSE s.id END,
    created_at = CASE WHEN s.expires_at <= $10::double precision THEN excluded.created_at ELSE s.created_at END,
    updated_at = excluded.updated_at,
    type = excluded.type,
    value = excluded.value,
    plain = excluded.plain,
    opaque = excluded.opaque,
    dims = excluded.dims,
    ttl_minutes = excluded.ttl_minutes,
    expires_at = excluded.expires_at
RETURNING id, namespace, key;

-- delete --
-- Remove items.
DELETE FROM store AS s
USING unnest($1::text[], $2::text[]) AS a (namespace, key)
WHERE s.namespace = a.namespace AND s.key = a.key;

-- delete_vectors --
-- Forget what some items were found by.
DELETE FROM store_vectors WHERE item = ANY ($1::bigint[]);

-- put_vectors --
-- Note what items are found by.
INSERT INTO store_vectors (item, dims, embedding)
SELECT n.item, $3::integer, n.embedding::vector FROM unnest($1::bigint[], $2::text[]) AS n (item, embedding);

-- put_sealed_vectors --
-- Note what items of an encrypted store are found by.
INSERT INTO store_sealed_vectors (item, type, vectors)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bytea[])
ON CONFLICT (item) DO UPDATE SET type = excluded.type, vectors = excluded.vectors;

-- prolong --
-- Start the time to live of some items again, unless they have expired or were given another one meanwhile.
UPDATE store AS s SET expires_at = n.expires
FROM unnest($1::bigint[], $2::double precision[], $3::double precision[]) AS n (id, ttl, expires)
WHERE s.id = n.id AND s.ttl_minutes = n.ttl AND s.expires_at > $4::double precision AND s.expires_at < n.expires;

-- sweep --
-- Remove some of what has expired; return how many items that were.
WITH gone AS (
    DELETE FROM store WHERE id IN (
        SELECT id FROM store WHERE expires_at <= $1::double precision LIMIT $2::bigint FOR UPDATE SKIP LOCKED
    )
    RETURNING 1
)
SELECT count(*) FROM gone;

-- index_vectors --
-- Let the vectors of one number of dimensions be found without looking at each.
CREATE INDEX IF NOT EXISTS store_vectors_{dims}
ON store_vectors USING hnsw ((embedding::vector({dims})) vector_ip_ops)
WHERE dims = {dims};

-- indexed --
-- Whether there is such an index.
SELECT to_regclass($1::text) IS NOT NULL;

-- search_on --
-- Let a search in an index go on until it has found enough that meets its conditions.
SET LOCAL hnsw.iterative_scan = 'strict_order';
