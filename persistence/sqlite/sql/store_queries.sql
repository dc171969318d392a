-- find --
-- The item of an address, expired or not.
SELECT id, namespace, key, type, value, created_at, updated_at, ttl_minutes, expires_at
FROM store
WHERE namespace = ? AND key = ?;

-- row --
-- An item by its number.
SELECT id, namespace, key, type, value, created_at, updated_at, ttl_minutes, expires_at
FROM store
WHERE id = ?;

-- below --
-- The condition for what is in a namespace or below it. The bounds are for the index; what decides is the comparison of
-- whole labels, which also holds in files of other text encodings.
(s.namespace = :exact OR (s.namespace >= :first AND s.namespace < :after))
    AND (s.namespace = :exact OR substr(s.namespace, 1, length(:first)) = :first);

-- anywhere --
-- The condition for what is in any namespace.
true;

-- rows_anywhere --
-- Items that have not expired, in order.
SELECT id, namespace, key, type, value, created_at, updated_at, ttl_minutes, expires_at
FROM store
WHERE expires_at IS NULL OR expires_at > :now
ORDER BY id
LIMIT :limit OFFSET :offset;

-- rows_below --
-- The same of a namespace and of all below it. Numbers are sorted first, so that no value is read that is not asked for.
SELECT id, namespace, key, type, value, created_at, updated_at, ttl_minutes, expires_at
FROM store
WHERE id IN (
    SELECT s.id
    FROM store AS s
    WHERE {place} AND (s.expires_at IS NULL OR s.expires_at > :now)
    ORDER BY s.id
    LIMIT :limit OFFSET :offset
)
ORDER BY id;

-- candidates --
-- What a search by meaning must know of the items in and below a namespace that have not expired.
SELECT s.id, s.namespace, s.key, s.type, CASE WHEN :whole THEN s.value END, v.type, v.vectors
FROM store AS s LEFT JOIN store_vectors AS v ON v.item = s.id AND v.dims = :dims
WHERE {place} AND (s.expires_at IS NULL OR s.expires_at > :now);

-- nearest --
-- A page of the items in and below a namespace that have not expired, the likest first and those without vectors last;
-- sqlite-vec compares, and fails for vectors that are damaged or of another type. Of an item's vectors the likest
-- counts. A vector of zeros is like nothing.
SELECT
    s.id,
    CASE
        WHEN v.item IS NULL OR length(v.vectors) = 0 THEN NULL
        WHEN v.type <> 'f32' THEN vec_distance_cosine(x'00', :query)
        WHEN length(v.vectors) = :size
            THEN round(1 - coalesce(vec_distance_cosine(v.vectors, :query), 1), :decimals) + 0.0
        ELSE (
            WITH RECURSIVE piece (start) AS (
                SELECT 1
                UNION ALL
                SELECT start + :size FROM piece WHERE start + :size <= length(v.vectors)
            )
            SELECT max(round(1 - coalesce(vec_distance_cosine(substr(v.vectors, start, :size), :query), 1), :decimals))
            FROM piece
        ) + 0.0
    END AS score
FROM store AS s LEFT JOIN store_vectors AS v ON v.item = s.id AND v.dims = :dims
WHERE {place} AND (s.expires_at IS NULL OR s.expires_at > :now)
ORDER BY score DESC NULLS LAST, s.id
LIMIT :limit OFFSET :offset;

-- namespaces --
-- The namespaces in and below one that hold items.
SELECT DISTINCT s.namespace FROM store AS s WHERE {place} AND (s.expires_at IS NULL OR s.expires_at > :now);

-- delete_expired_item --
-- Remove what an address holds if it has expired: what is put there then is new.
DELETE FROM store WHERE namespace = ? AND key = ? AND expires_at <= ?;

-- put --
-- Store an item, keeping the number and the creation time of the one with its address.
INSERT INTO store (namespace, key, type, value, created_at, updated_at, ttl_minutes, expires_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, key) DO UPDATE SET
    type = excluded.type,
    value = excluded.value,
    updated_at = excluded.updated_at,
    ttl_minutes = excluded.ttl_minutes,
    expires_at = excluded.expires_at
RETURNING id;

-- delete --
-- Remove an item.
DELETE FROM store WHERE namespace = ? AND key = ?;

-- delete_vectors --
-- Forget what an item was indexed by.
DELETE FROM store_vectors WHERE item = ?;

-- put_vectors --
-- Index an item.
INSERT INTO store_vectors (item, dims, type, vectors) VALUES (?, ?, ?, ?);

-- prolong --
-- Start an item's time to live again, unless it has expired or was given another one meanwhile.
UPDATE store SET expires_at = :expires_at
WHERE id = :id AND ttl_minutes = :ttl AND expires_at > :now AND expires_at < :expires_at;

-- sweep --
-- Remove some of what has expired.
DELETE FROM store WHERE id IN (SELECT id FROM store WHERE expires_at <= ? LIMIT ?);

-- applied_migrations --
-- The numbers of the migrations that were applied.
SELECT number FROM store_migrations;

-- note_migration --
-- Note that a migration was applied.
INSERT INTO store_migrations (number) VALUES (?);
