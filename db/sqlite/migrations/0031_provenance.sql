-- Who says so (db/contract/provenance.ts). The record of an event is in the columns of its block, which older blocks lack;
-- what changes or is deleted on its own is here.

-- The networks of contradicted requests, by day of arrival (days since 1970).
CREATE TABLE event_network (
  org INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  day INTEGER NOT NULL,
  network TEXT NOT NULL,
  PRIMARY KEY (org, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_network_of ON event_network (org, network, seq);
CREATE INDEX event_network_day ON event_network (day);

-- Signatures that were accepted, so that none counts twice. `hash` is of the key and its nonce, or of the signed text.
CREATE TABLE signature_use (
  hash BLOB PRIMARY KEY NOT NULL,
  expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signature_use_expiry ON signature_use (expires_at_ms);

-- Hosts of the site, a JSON list, which signed requests may name.
ALTER TABLE site ADD COLUMN hosts TEXT NOT NULL DEFAULT '[]';
