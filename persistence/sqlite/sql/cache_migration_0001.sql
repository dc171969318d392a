-- Results kept for equal inputs. What a row holds can be made again, so it may be deleted at any time.

CREATE TABLE cache_entries (
    namespace BLOB NOT NULL,
    key BLOB NOT NULL,
    type TEXT NOT NULL,
    value BLOB NOT NULL,
    expires_at REAL,
    PRIMARY KEY (namespace, key)
) STRICT;

CREATE INDEX cache_entries_by_expiry ON cache_entries (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE cache_migrations (
    v INTEGER PRIMARY KEY
) STRICT;
