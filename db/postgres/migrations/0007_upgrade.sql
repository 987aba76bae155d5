-- Nodes of two releases on one database: what each of them knows, and which may still write.

ALTER TABLE node ADD COLUMN schema bigint NOT NULL DEFAULT 0; -- the newest that the node's release knows

-- The lowest schema whose nodes may write. A migration that they do not tolerate raises it.
ALTER TABLE store_lock ADD COLUMN writer_schema bigint NOT NULL DEFAULT 0;

-- Begins every writing transaction of a node that knows p_schema. A migration holds the same lock alone, so it waits for
-- the transactions that run, and each later one sees the new value: a node that was suspended meanwhile writes nothing.
CREATE FUNCTION begin_write(p_schema bigint) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE v_schema bigint;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(1397181523);
  SELECT writer_schema INTO STRICT v_schema FROM store_lock WHERE name = 'records';
  IF p_schema < v_schema THEN
    RAISE EXCEPTION 'the database needs schema %, and this release knows up to %: use a newer release', v_schema, p_schema
      USING ERRCODE = 'SG004';
  END IF;
END $$;

-- An append is one statement, so it begins and writes in one call.
ALTER FUNCTION append_events(bigint, bigint, bigint, uuid[], integer[], bigint[], bigint[], bigint[], bigint[],
  integer[], integer[], integer[], integer[], bytea, integer[], text[], integer[], text, bigint) RENAME TO store_events;
CREATE FUNCTION append_events(
  p_schema bigint, p_org bigint, p_term_drops bigint, p_received_ms bigint, p_hashes uuid[],
  p_events integer[], p_min_at bigint[], p_max_at bigint[], p_received_min bigint[], p_checksum bigint[],
  p_start integer[], p_columns integer[], p_ids integer[], p_bodies integer[], p_data bytea,
  p_member integer[], p_text text[], p_code integer[], p_counts text, p_kept_hour bigint
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM begin_write(p_schema);
  RETURN store_events(p_org, p_term_drops, p_received_ms, p_hashes, p_events, p_min_at, p_max_at, p_received_min,
    p_checksum, p_start, p_columns, p_ids, p_bodies, p_data, p_member, p_text, p_code, p_counts, p_kept_hour);
END $$;
