-- find --
-- A value that has not expired.
SELECT type, value
FROM cache_entries
WHERE namespace = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);

-- put --
-- Keep a value, replacing the one with its key.
INSERT INTO cache_entries (namespace, key, type, value, expires_at)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    type = excluded.type,
    value = excluded.value,
    expires_at = excluded.expires_at;

-- forget_expired --
-- Delete what is past its time.
DELETE FROM cache_entries WHERE expires_at <= ?;

-- forget_within --
-- Delete a range of namespaces: one, and all that begin with it.
DELETE FROM cache_entries WHERE namespace >= ? AND namespace < ?;

-- forget_all --
-- Delete everything.
DELETE FROM cache_entries;

-- applied_migrations --
-- Numbers of the cache's migrations that this database has seen.
SELECT v FROM cache_migrations;

-- note_migration --
-- Remember that a migration was applied.
INSERT INTO cache_migrations (v) VALUES (?);
