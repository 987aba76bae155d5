-- A row of `event_id` is 8 bytes smaller, and its index entry too: `h` begins with the number of the organization. It
-- has 2 bytes of that and 14 of the hash. Rewrites the table: 3 s per million ids.

DO $$
BEGIN
  EXECUTE 'ALTER TABLE event_id RENAME TO event_id_before';
  FOR part IN 0..15 LOOP
    EXECUTE format('ALTER TABLE event_id_%1$s RENAME TO event_id_before_%1$s', lpad(part::text, 2, '0'));
  END LOOP;
END $$;

CREATE TABLE event_id (h uuid NOT NULL, seq bigint NOT NULL) PARTITION BY HASH (h);
DO $$
BEGIN
  FOR part IN 0..15 LOOP
    EXECUTE format('CREATE TABLE event_id_%s PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER %s)',
      lpad(part::text, 2, '0'), part);
  END LOOP;
END $$;
INSERT INTO event_id (h, seq)
  SELECT (lpad(to_hex(org), 4, '0') || left(replace(h::text, '-', ''), 28))::uuid, seq FROM event_id_before;
DROP TABLE event_id_before;
ALTER TABLE event_id ADD PRIMARY KEY (h);

-- The last arrival when the newest block was deleted. Otherwise the newest block ends with `last_seq`, which `verify`
-- checks. Before this migration nobody noted it.
ALTER TABLE event_org ADD COLUMN deleted_seq bigint NOT NULL DEFAULT 0;
UPDATE event_org SET deleted_seq = last_seq;

-- As in 0004_append.sql, for this table.
CREATE OR REPLACE FUNCTION store_events(
  p_org bigint, p_term_drops bigint, p_received_ms bigint, p_hashes uuid[],
  p_events integer[], p_min_at bigint[], p_max_at bigint[], p_received_min bigint[], p_checksum bigint[],
  p_start integer[], p_columns integer[], p_ids integer[], p_bodies integer[], p_data bytea,
  p_member integer[], p_text text[], p_code integer[], p_counts text, p_kept_hour bigint
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE
  v_last bigint;
  v_drops bigint;
  v_received bigint;
  v_floor bigint;
  v_terms bigint;
  v_crossing bigint;
BEGIN
  SELECT last_seq, term_drops, last_received_ms INTO STRICT v_last, v_drops, v_received
    FROM event_org WHERE num = p_org FOR UPDATE;
  IF v_drops <> p_term_drops THEN RAISE EXCEPTION 'terms were deleted' USING ERRCODE = 'SG002'; END IF;

  IF cardinality(p_code) > 0 THEN
    INSERT INTO event_term (org, member, text, code)
      SELECT p_org, t.member, t.text, t.code FROM unnest(p_member, p_text, p_code) AS t (member, text, code)
      ON CONFLICT DO NOTHING;
    SELECT count(*) INTO v_terms
      FROM unnest(p_member, p_text, p_code) AS t (member, text, code)
      JOIN event_term AS known ON known.org = p_org AND known.member = t.member AND known.text = t.text COLLATE "C"
        AND known.code = t.code;
    IF v_terms <> cardinality(p_code) THEN
      RAISE EXCEPTION 'a term has another code' USING ERRCODE = 'SG001';
    END IF;
  END IF;

  IF cardinality(p_hashes) > 0 THEN
    INSERT INTO event_id (h, seq)
      SELECT t.h, v_last + t.at FROM unnest(p_hashes) WITH ORDINALITY AS t (h, at) ORDER BY t.h;
    -- A clock that was wrong by more than an hour does not hold later arrivals back.
    v_floor := CASE WHEN p_received_ms < v_received - 3600000 THEN 0 ELSE v_received END;
    WITH block AS (
      SELECT b.*, v_last + 1 + sum(b.events) OVER (ORDER BY b.start) - b.events AS first
      FROM unnest(p_events, p_min_at, p_max_at, p_received_min, p_checksum, p_start, p_columns, p_ids, p_bodies)
        AS b (events, min_at, max_at, received_min, checksum, start, columns, ids, bodies)
    ), stored AS (
      INSERT INTO event_block (place, events, min_at, max_at, checksum, columns)
        SELECT (p_org << 36) + first, events, min_at, max_at,
          CASE WHEN received_min < v_floor THEN checksum # (v_floor >> 32) # (v_floor & 4294967295) ELSE checksum END,
          CASE WHEN received_min < v_floor THEN int8send(v_floor) ELSE ''::bytea END
            || substring(p_data FROM start FOR columns)
        FROM block
    ), bodies AS (
      INSERT INTO event_body (place, ids, bodies)
        SELECT (p_org << 36) + first, substring(p_data FROM start + columns FOR ids),
          substring(p_data FROM start + columns + ids FOR bodies)
        FROM block
    )
    SELECT count(*) INTO v_crossing FROM block WHERE first >> 16 <> (first + events - 1) >> 16;
    IF v_crossing > 0 THEN RAISE EXCEPTION 'a block crosses a segment' USING ERRCODE = 'SG003'; END IF;
    UPDATE event_org SET last_seq = v_last + cardinality(p_hashes),
      last_received_ms = greatest(v_floor, p_received_ms) WHERE num = p_org;
  END IF;

  IF p_counts IS NOT NULL THEN
    INSERT INTO ingest_hour AS known (org_id, hour, key_id, requests, refused, accepted, deduped, rejected,
        ahead_max_ms, behind_min_ms)
      SELECT o.org_id, c.hour, c.key_id, c.requests, c.refused, c.accepted, c.deduped, c.rejected,
          c.ahead_max_ms, c.behind_min_ms
        FROM event_org AS o, jsonb_to_recordset(p_counts::jsonb) AS c (hour bigint, key_id text, requests bigint,
          refused bigint, accepted bigint, deduped bigint, rejected bigint, ahead_max_ms bigint, behind_min_ms bigint)
        WHERE o.num = p_org
      ON CONFLICT (org_id, hour, key_id) DO UPDATE SET
        requests = known.requests + excluded.requests, refused = known.refused + excluded.refused,
        accepted = known.accepted + excluded.accepted, deduped = known.deduped + excluded.deduped,
        rejected = known.rejected + excluded.rejected,
        ahead_max_ms = greatest(known.ahead_max_ms, excluded.ahead_max_ms),
        behind_min_ms = least(known.behind_min_ms, excluded.behind_min_ms);
    DELETE FROM ingest_hour USING event_org AS o
      WHERE o.num = p_org AND ingest_hour.org_id = o.org_id AND ingest_hour.hour < p_kept_hour;
    DELETE FROM ingest_near_miss USING event_org AS o
      WHERE o.num = p_org AND ingest_near_miss.org_id = o.org_id AND ingest_near_miss.hour < p_kept_hour;
  END IF;
  RETURN v_last + cardinality(p_hashes);
END $$;
