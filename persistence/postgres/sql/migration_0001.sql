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

-- Stores a batch of units in one call, which is one transaction and one round trip. Columns arrive as arrays.
-- Returns no row if all is stored. Otherwise nothing is: then the row names, by its position, the first unit whose
-- thread has moved on, and the head that was found there.
CREATE FUNCTION checkpoint_commit_1(
    c_thread text[], c_ns text[], c_id text[], c_parent text[], c_type text[], c_checkpoint text[], c_metadata text[],
    b_thread text[], b_ns text[], b_channel text[], b_version text[], b_type text[], b_blob bytea[],
    w_thread text[], w_ns text[], w_id text[], w_task text[], w_idx integer[], w_channel text[], w_type text[],
    w_blob bytea[], w_path text[],
    u_thread text[], u_ns text[], u_id text[], u_task text[], u_idx integer[], u_channel text[], u_type text[],
    u_blob bytea[], u_path text[],
    f_thread text[], f_ns text[], f_id text[], f_expected text[], f_coming text[]
) RETURNS TABLE (refused integer, head text) LANGUAGE plpgsql AS $function$
BEGIN
    IF cardinality(f_thread) > 0 THEN
        -- Each statement of this function sees what was committed before it began, but only in READ COMMITTED.
        IF current_setting('transaction_isolation') = 'repeatable read' THEN
            RAISE EXCEPTION 'heads cannot be compared in REPEATABLE READ: use READ COMMITTED'
                USING ERRCODE = 'invalid_transaction_state';
        END IF;
        -- Whoever moves the same thread and namespace waits here; in one order, so that nobody waits in a circle.
        PERFORM pg_advisory_xact_lock(place.lock)
        FROM (
            SELECT DISTINCT hashtextextended(f.thread || chr(31) || f.ns, 7419) AS lock
            FROM unnest(f_thread, f_ns) AS f (thread, ns)
            ORDER BY lock
        ) AS place;
        RETURN QUERY
            SELECT f.position::integer, greatest(coalesce(stored.head, ''), f.coming)
            FROM unnest(f_thread, f_ns, f_id, f_expected, f_coming) WITH ORDINALITY
                AS f (thread, ns, id, expected, coming, position)
            CROSS JOIN LATERAL (
                SELECT max(c.checkpoint_id) AS head
                FROM checkpoints AS c
                WHERE c.thread_id = f.thread AND c.checkpoint_ns = f.ns
            ) AS stored
            WHERE greatest(coalesce(stored.head, ''), f.coming) <> f.expected AND NOT EXISTS (
                -- Stored already: it is tried again, after an answer that was lost.
                SELECT FROM checkpoints AS c
                WHERE c.thread_id = f.thread AND c.checkpoint_ns = f.ns AND c.checkpoint_id = f.id
            )
            ORDER BY f.position
            LIMIT 1;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF cardinality(c_thread) > 0 THEN
        INSERT INTO checkpoints AS c
            (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT n.thread, n.ns, n.id, n.parent, n.type, n.checkpoint::jsonb, n.metadata::jsonb
        FROM unnest(c_thread, c_ns, c_id, c_parent, c_type, c_checkpoint, c_metadata)
            AS n (thread, ns, id, parent, type, checkpoint, metadata)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET
            parent_checkpoint_id = excluded.parent_checkpoint_id,
            type = excluded.type,
            checkpoint = excluded.checkpoint,
            metadata = excluded.metadata;
    END IF;
    IF cardinality(b_thread) > 0 THEN
        INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
        SELECT * FROM unnest(b_thread, b_ns, b_channel, b_version, b_type, b_blob)
        ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING;
    END IF;
    IF cardinality(w_thread) > 0 THEN
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
        SELECT * FROM unnest(w_thread, w_ns, w_id, w_task, w_idx, w_channel, w_type, w_blob, w_path)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO NOTHING;
    END IF;
    IF cardinality(u_thread) > 0 THEN
        INSERT INTO checkpoint_writes
            (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path)
        SELECT * FROM unnest(u_thread, u_ns, u_id, u_task, u_idx, u_channel, u_type, u_blob, u_path)
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO UPDATE SET
            channel = excluded.channel, type = excluded.type, blob = excluded.blob, task_path = excluded.task_path;
    END IF;
END
$function$;
