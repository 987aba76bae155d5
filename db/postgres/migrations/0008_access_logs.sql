-- Access logs: how far each was read, and requests by hour, site and kind. Both change in the transaction of the events.

-- lines = stored + deduped + people + assets + bots + notes + bad. `checksum` is of the other columns.
CREATE TABLE access_source (
  org_id text COLLATE "C" NOT NULL,
  site_id text COLLATE "C" NOT NULL,
  source text COLLATE "C" NOT NULL,
  path text COLLATE "C" NOT NULL,
  format text COLLATE "C" NOT NULL,
  position bigint NOT NULL,
  tail text COLLATE "C" NOT NULL,
  lines bigint NOT NULL,
  stored bigint NOT NULL,
  deduped bigint NOT NULL,
  people bigint NOT NULL,
  assets bigint NOT NULL,
  bots bigint NOT NULL,
  notes bigint NOT NULL,
  bad bigint NOT NULL,
  bytes bigint NOT NULL,
  newest_ms bigint,
  updated_ms bigint NOT NULL,
  is_drain bigint NOT NULL CHECK (is_drain IN (0, 1)),
  expires_ms bigint NOT NULL, -- when its sums move to the row `(drains)` or `(older)` of its site
  checksum bigint NOT NULL,
  PRIMARY KEY (org_id, site_id, source)
);
CREATE INDEX access_source_expiry ON access_source (org_id, expires_ms);
CREATE INDEX access_source_updated ON access_source (org_id, is_drain, updated_ms);

-- Hour -1 has the sums of the hours that have expired. checksum = 31 requests + 7 bytes + hour.
CREATE TABLE access_hour (
  org_id text COLLATE "C" NOT NULL,
  hour bigint NOT NULL,
  site_id text COLLATE "C" NOT NULL,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'person', 'asset', 'bot')),
  requests bigint NOT NULL,
  bytes bigint NOT NULL,
  checksum bigint NOT NULL,
  PRIMARY KEY (org_id, hour, site_id, kind)
);

-- Stores what the lines of a group add to one organization, in the statement of its events. The caller computed each
-- source from the row that it had read: raises SG005 when the position has moved since, and the caller reads it again.
CREATE FUNCTION append_access(p_schema bigint, p_org bigint, p_sources text, p_hours text) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE
  v_org_id text;
  v_moved bigint;
BEGIN
  PERFORM begin_write(p_schema);
  SELECT org_id INTO STRICT v_org_id FROM event_org WHERE num = p_org FOR UPDATE;
  SELECT count(*) INTO v_moved
    FROM jsonb_to_recordset(p_sources::jsonb) AS s (site_id text, source text, was bigint)
    LEFT JOIN access_source AS known ON known.org_id = v_org_id AND known.site_id = s.site_id COLLATE "C"
      AND known.source = s.source COLLATE "C"
    WHERE coalesce(known.position, 0) <> s.was;
  IF v_moved > 0 THEN RAISE EXCEPTION 'a log was read further' USING ERRCODE = 'SG005'; END IF;

  INSERT INTO access_source (org_id, site_id, source, path, format, position, tail, lines, stored, deduped, people,
      assets, bots, notes, bad, bytes, newest_ms, updated_ms, is_drain, expires_ms, checksum)
    SELECT v_org_id, s.site_id, s.source, s.path, s.format, s.position, s.tail, s.lines, s.stored, s.deduped, s.people,
      s.assets, s.bots, s.notes, s.bad, s.bytes, s.newest_ms, s.updated_ms, s.is_drain, s.expires_ms, s.checksum
    FROM jsonb_to_recordset(p_sources::jsonb) AS s (site_id text, source text, path text, format text,
      position bigint, tail text, lines bigint, stored bigint, deduped bigint, people bigint, assets bigint,
      bots bigint, notes bigint, bad bigint, bytes bigint, newest_ms bigint, updated_ms bigint, is_drain bigint,
      expires_ms bigint, checksum bigint)
    ON CONFLICT (org_id, site_id, source) DO UPDATE SET
      path = excluded.path, format = excluded.format, position = excluded.position, tail = excluded.tail,
      lines = excluded.lines, stored = excluded.stored, deduped = excluded.deduped, people = excluded.people,
      assets = excluded.assets, bots = excluded.bots, notes = excluded.notes, bad = excluded.bad,
      bytes = excluded.bytes, newest_ms = excluded.newest_ms, updated_ms = excluded.updated_ms,
      is_drain = excluded.is_drain, expires_ms = excluded.expires_ms, checksum = excluded.checksum;

  INSERT INTO access_hour AS known (org_id, hour, site_id, kind, requests, bytes, checksum)
    SELECT v_org_id, h.hour, h.site_id, h.kind, h.requests, h.bytes, 31 * h.requests + 7 * h.bytes + h.hour
    FROM jsonb_to_recordset(p_hours::jsonb)
      AS h (hour bigint, site_id text, kind text, requests bigint, bytes bigint)
    ON CONFLICT (org_id, hour, site_id, kind) DO UPDATE SET
      requests = known.requests + excluded.requests, bytes = known.bytes + excluded.bytes,
      checksum = known.checksum + 31 * excluded.requests + 7 * excluded.bytes;
  RETURN 0;
END $$;
