-- Who says so (db/contract/provenance.ts). The record of an event is in the columns of its block, which older blocks lack;
-- what changes or is deleted on its own is here.

-- The networks of contradicted requests, by day of arrival (days since 1970).
CREATE TABLE event_network (
  org bigint NOT NULL,
  seq bigint NOT NULL,
  day bigint NOT NULL,
  network text COLLATE "C" NOT NULL,
  PRIMARY KEY (org, seq)
);
CREATE INDEX event_network_of ON event_network (org, network, seq);
CREATE INDEX event_network_day ON event_network (day);

-- Signatures that were accepted, so that none counts twice. `hash` is of the key and its nonce, or of the signed text.
CREATE TABLE signature_use (
  hash bytea PRIMARY KEY NOT NULL,
  expires_at_ms bigint NOT NULL
);
ALTER TABLE signature_use ALTER COLUMN hash SET STORAGE EXTERNAL;
CREATE INDEX signature_use_expiry ON signature_use (expires_at_ms);

-- Hosts of the site, a JSON list, which signed requests may name.
ALTER TABLE site ADD COLUMN hosts text COLLATE "C" NOT NULL DEFAULT '[]';

-- Stores the networks of events that `append_events` stored in the same statement, whose last arrival it returned.
-- `p_back` has how many arrivals before it each event is.
CREATE FUNCTION append_networks(p_schema bigint, p_last bigint, p_org bigint, p_back bigint[], p_days bigint[],
  p_networks text) RETURNS bigint
LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM begin_write(p_schema);
  INSERT INTO event_network (org, seq, day, network)
    SELECT p_org, p_last - sent.back, sent.day, sent.network COLLATE "C"
    FROM ROWS FROM (unnest(p_back), unnest(p_days), jsonb_array_elements_text(p_networks::jsonb))
      AS sent (back, day, network);
  RETURN p_last;
END $$;
