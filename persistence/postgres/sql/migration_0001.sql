-- The four tables, with the columns and primary keys of LangGraph's Postgres layout.
-- Ids sort by code point ("C"), as everywhere else here: the newest checkpoint is the greatest id.
-- There is no index on thread_id alone: it begins every primary key.

CREATE TABLE checkpoints (
    thread_id text COLLATE "C" NOT NULL,
    checkpoint_ns text COLLATE "C" NOT NULL DEFAULT '',
    checkpoint_id text COLLATE "C" NOT NULL,
    parent_checkpoint_id text COLLATE "C",
    type text,
    checkpoint jsonb NOT NULL,
    metadata jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);

-- Listing all threads together, newest first. Ids grow with time, so its pages fill one after the other.
CREATE INDEX checkpoints_checkpoint_id_idx ON checkpoints (checkpoint_id, thread_id, checkpoint_ns);

CREATE TABLE checkpoint_writes (
    thread_id text COLLATE "C" NOT NULL,
    checkpoint_ns text COLLATE "C" NOT NULL DEFAULT '',
    checkpoint_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    idx integer NOT NULL,
    channel text COLLATE "C" NOT NULL,
    type text,
    blob bytea NOT NULL,
    task_path text COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

CREATE TABLE checkpoint_blobs (
    thread_id text COLLATE "C" NOT NULL,
    checkpoint_ns text COLLATE "C" NOT NULL DEFAULT '',
    channel text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    type text NOT NULL,
    blob bytea,
    PRIMARY KEY (thread_id, checkpoint_ns, channel, version)
);

-- Stores a batch of units in one call, which is one transaction and one round trip.
-- What is no blob arrives as one JSON document, rows as lists in the order of their table's columns: a driver spends less
-- on it than on an array for each column. Blobs follow in the order of their rows.
-- Returns no row if all is stored. Otherwise nothing is: then the row names, by its position, the first unit whose
-- thread has moved on, and the head that was found there.
CREATE FUNCTION checkpoint_commit_1(batch jsonb, blobs bytea[], write_blobs bytea[], upsert_blobs bytea[])
RETURNS TABLE (refused integer, head text) LANGUAGE plpgsql AS $function$
BEGIN
    IF batch ? 'fences' THEN
        -- Each statement of this function sees what was committed before it began, but only in READ COMMITTED.
        IF current_setting('transaction_isolation') = 'repeatable read' THEN
            RAISE EXCEPTION 'heads cannot be compared in REPEATABLE READ: use READ COMMITTED'
                USING ERRCODE = 'invalid_transaction_state';
        END IF;
        -- Whoever moves the same thread and namespace waits here; in one order, so that nobody waits in a circle.
        PERFORM pg_advisory_xact_lock(place.lock)
        FROM (
            SELECT DISTINCT hashtextextended((f.fence ->> 0) || chr(31) || (f.fence ->> 1), 7419) AS lock
            FROM jsonb_array_elements(batch -> 'fences') AS f (fence)
            ORDER BY lock
        ) AS place;
        RETURN QUERY
            SELECT f.position::integer, greatest(coalesce(stored.head, ''), f.fence ->> 4)
            FROM jsonb_array_elements(batch -> 'fences') WITH ORDINALITY AS f (fence, position)
            CROSS JOIN LATERAL (
                SELECT max(c.checkpoint_id) AS head
                FROM checkpoints AS c
                WHERE c.thread_id = f.fence ->> 0 AND c.checkpoint_ns = f.fence ->> 1
            ) AS stored
            WHERE greatest(coalesce(stored.head, ''), f.fence ->> 4) <> f.fence ->> 3 AND NOT EXISTS (
                -- Stored already: it is tried again, after an answer that was lost.
                SELECT FROM checkpoints AS c
                WHERE c.thread_id = f.fence ->> 0 AND c.checkpoint_ns = f.fence ->> 1
                    AND c.checkpoint_id = f.fence ->> 2
            )
            ORDER BY f.position
            LIMIT 1;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF batch ? 'checkpoints' THEN
        INSERT INTO checkpoints AS c
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT n.item ->> 0, n.item ->> 1, n.item ->> 2, n.item ->> 3, n.item ->> 4, n.item -> 5, n.item -> 6
        FROM jsonb_array_elements(batch -> 'checkpoints') AS n (item)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
            parent_checkpoint_id = excluded.parent_checkpoint_id,
            type = excluded.type,
            checkpoint = excluded.checkpoint,
            metadata = excluded.metadata;
    END IF;
    IF batch ? 'blobs' THEN
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT n.item ->> 0, n.item ->> 1, n.item ->> 2, n.item ->> 3, n.item ->> 4, n.blob
        FROM ROWS FROM (jsonb_array_elements(batch -> 'blobs'), unnest(blobs)) AS n (item, blob)
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING;
    END IF;
    IF batch ? 'writes' THEN
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
        SELECT n.item ->> 0, n.item ->> 1, n.item ->> 2, n.item ->> 3, (n.item -> 4)::integer, n.item ->> 5,
            n.item ->> 6, n.blob, n.item ->> 7
        FROM ROWS FROM (jsonb_array_elements(batch -> 'writes'), unnest(write_blobs)) AS n (item, blob)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING;
    END IF;
    IF batch ? 'upserts' THEN
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
        SELECT n.item ->> 0, n.item ->> 1, n.item ->> 2, n.item ->> 3, (n.item -> 4)::integer, n.item ->> 5,
            n.item ->> 6, n.blob, n.item ->> 7
        FROM ROWS FROM (jsonb_array_elements(batch -> 'upserts'), unnest(upsert_blobs)) AS n (item, blob)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
            channel = excluded.channel, type = excluded.type, blob = excluded.blob, task_path = excluded.task_path;
    END IF;
END
$function$;
