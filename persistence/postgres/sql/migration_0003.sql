-- Stores a batch of units as its predecessor does, and looks up what it compares row by row, each in its primary key. A
-- planner that was free to join read whole tables: a batch is as short as it is seldom, and it expects a hundred rows.
-- Leases that change come a second time, as `moved`: most batches change none.
CREATE FUNCTION checkpoint_commit_3(batch jsonb, blobs bytea[], write_blobs bytea[], upsert_blobs bytea[])
RETURNS TABLE (refused integer, head text) LANGUAGE plpgsql AS $function$
BEGIN
    IF batch ? 'beat' AND (batch -> 'beat' ->> 1)::float8 > 0 THEN
        INSERT INTO checkpoint_owners AS o (owner, expires_at, seconds)
        SELECT batch -> 'beat' ->> 0, clock_timestamp() + make_interval(secs => b.seconds), b.seconds
        FROM (SELECT (batch -> 'beat' ->> 1)::float8 AS seconds) AS b
        ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at, seconds = excluded.seconds;
    ELSIF batch ? 'beat' THEN
        DELETE FROM checkpoint_owners AS o WHERE o.owner IN (
            SELECT d.owner FROM checkpoint_owners AS d
            WHERE d.owner = batch -> 'beat' ->> 0 OR d.expires_at < clock_timestamp() - interval '1 day'
            FOR UPDATE SKIP LOCKED
        );
    END IF;
    IF batch ? 'fences' OR batch ? 'leases' THEN
        -- Each statement of this function sees what was committed before it began, but only in READ COMMITTED.
        IF current_setting('transaction_isolation') = 'repeatable read' THEN
            RAISE EXCEPTION 'heads cannot be compared in REPEATABLE READ: use READ COMMITTED'
                USING ERRCODE = 'invalid_transaction_state';
        END IF;
        -- Whoever moves the same thread waits here; in one order, so that nobody waits in a circle.
        PERFORM pg_advisory_xact_lock(place.lock)
        FROM (
            SELECT hashtextextended((f.fence ->> 0) || chr(31) || (f.fence ->> 1), 7419) AS lock
            FROM jsonb_array_elements(batch -> 'fences') AS f (fence)
            UNION
            SELECT hashtextextended(l.lease ->> 0, 7420)
            FROM jsonb_array_elements(batch -> 'leases') AS l (lease)
            ORDER BY lock
        ) AS place;
    END IF;
    IF batch ? 'leases' THEN
        RETURN QUERY
            SELECT -l.position::integer, coalesce(s.epoch || ' ' || s.owner, '')
            FROM jsonb_array_elements(batch -> 'leases') WITH ORDINALITY AS l (lease, position)
            LEFT JOIN LATERAL (
                SELECT h.epoch, h.owner FROM checkpoint_leases AS h WHERE h.thread_id = l.lease ->> 0 LIMIT 1
            ) AS s ON true
            WHERE NOT checkpoint_lease_fits_2(l.lease, coalesce(s.epoch, 0), coalesce(s.owner, '')) AND (
                -- Stored already: it is tried again, after an answer that was lost.
                SELECT c.checkpoint_id FROM checkpoints AS c
                WHERE c.thread_id = l.lease ->> 0 AND c.checkpoint_ns = l.lease ->> 11
                    AND c.checkpoint_id = l.lease ->> 12
                LIMIT 1
            ) IS NULL
            ORDER BY l.position;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF batch ? 'fences' THEN
        RETURN QUERY
            SELECT f.position::integer, greatest(coalesce(stored.head, ''), f.fence ->> 4)
            FROM jsonb_array_elements(batch -> 'fences') WITH ORDINALITY AS f (fence, position)
            CROSS JOIN LATERAL (
                SELECT max(c.checkpoint_id) AS head
                FROM checkpoints AS c
                WHERE c.thread_id = f.fence ->> 0 AND c.checkpoint_ns = f.fence ->> 1
            ) AS stored
            WHERE greatest(coalesce(stored.head, ''), f.fence ->> 4) <> f.fence ->> 3 AND (
                -- Stored already: it is tried again, after an answer that was lost.
                SELECT c.checkpoint_id FROM checkpoints AS c
                WHERE c.thread_id = f.fence ->> 0 AND c.checkpoint_ns = f.fence ->> 1
                    AND c.checkpoint_id = f.fence ->> 2
                LIMIT 1
            ) IS NULL
            ORDER BY f.position
            LIMIT 1;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF batch ? 'moved' THEN
        INSERT INTO checkpoint_leases AS h (thread_id, epoch, owner, graph, held)
        SELECT l.lease ->> 0, (l.lease -> 6)::bigint, l.lease ->> 7, l.lease ->> 8, (l.lease -> 9)::boolean
        FROM jsonb_array_elements(batch -> 'moved') AS l (lease)
        LEFT JOIN LATERAL (
            SELECT h.epoch, h.owner FROM checkpoint_leases AS h WHERE h.thread_id = l.lease ->> 0 LIMIT 1
        ) AS s ON true
        WHERE checkpoint_lease_fits_2(l.lease, coalesce(s.epoch, 0), coalesce(s.owner, ''))
        ON CONFLICT (thread_id) DO UPDATE SET
            epoch = excluded.epoch, owner = excluded.owner, graph = excluded.graph, held = excluded.held;
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
