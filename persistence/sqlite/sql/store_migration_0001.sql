-- Items by number, which grows in the order of creation; their vectors beside them, as most reads need none.
-- The namespace is its labels joined by periods, which labels cannot hold.
-- Other programs have tables of these names; their columns differ in each, so that none is taken for ours.

CREATE TABLE store (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    ttl_minutes REAL,
    expires_at REAL,
    UNIQUE (namespace, key)
) STRICT;

CREATE INDEX store_expiry ON store (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE store_vectors (
    item INTEGER PRIMARY KEY REFERENCES store (id) ON DELETE CASCADE,
    dims INTEGER NOT NULL,
    type TEXT NOT NULL,
    vectors BLOB NOT NULL
) STRICT;

CREATE TABLE store_migrations (
    number INTEGER PRIMARY KEY
) STRICT;
