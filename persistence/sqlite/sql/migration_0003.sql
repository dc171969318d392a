-- Leases: which run may write to a thread, and which savers live. One small row per thread that ever ran.

CREATE TABLE checkpoint_leases (
    thread_id TEXT NOT NULL PRIMARY KEY,
    epoch INTEGER NOT NULL,
    owner TEXT NOT NULL,
    graph TEXT NOT NULL,
    held INTEGER NOT NULL
) STRICT;

-- What is looked through for threads whose run died; almost always empty.
CREATE INDEX checkpoint_leases_held ON checkpoint_leases (thread_id) WHERE held;

CREATE TABLE checkpoint_owners (
    owner TEXT NOT NULL PRIMARY KEY,
    expires_at REAL NOT NULL,
    seconds REAL NOT NULL
) STRICT;
