-- The event engine (db/sql/events/DESIGN.md). Each table is described by the module that writes it.
CREATE TABLE event_org (
  num bigint PRIMARY KEY NOT NULL,
  org_id text COLLATE "C" NOT NULL UNIQUE,
  last_seq bigint NOT NULL,
  folded_seq bigint NOT NULL, -- rollups count arrivals up to here, at a block's end
  segments bigint NOT NULL, -- sealed ones, from 0
  rewrites bigint NOT NULL DEFAULT 0
);

CREATE TABLE event_block (
  place bigint PRIMARY KEY NOT NULL, -- org * 2^36 + first seq
  events bigint NOT NULL,
  min_at bigint NOT NULL,
  max_at bigint NOT NULL,
  checksum bigint NOT NULL, -- of the three blobs, for `verify`
  columns bytea NOT NULL
);
ALTER TABLE event_block ALTER COLUMN columns SET STORAGE EXTERNAL;

CREATE TABLE event_body (
  place bigint PRIMARY KEY NOT NULL,
  ids bytea NOT NULL,
  bodies bytea NOT NULL
);
ALTER TABLE event_body ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN bodies SET STORAGE EXTERNAL;

CREATE TABLE event_term (
  org bigint NOT NULL,
  member bigint NOT NULL,
  text text COLLATE "C" NOT NULL,
  code bigint NOT NULL,
  PRIMARY KEY (org, member, text)
);

CREATE TABLE event_segment (
  org bigint NOT NULL,
  segment bigint NOT NULL,
  min_at bigint NOT NULL,
  max_at bigint NOT NULL,
  zones bytea NOT NULL,
  index_version bigint NOT NULL DEFAULT 1,
  PRIMARY KEY (org, segment)
);
ALTER TABLE event_segment ALTER COLUMN zones SET STORAGE EXTERNAL;

CREATE TABLE event_posting (
  org bigint NOT NULL,
  member bigint NOT NULL,
  code bigint NOT NULL,
  segment bigint NOT NULL,
  positions bytea NOT NULL,
  PRIMARY KEY (org, member, code, segment)
);
ALTER TABLE event_posting ALTER COLUMN positions SET STORAGE EXTERNAL;

CREATE TABLE event_posting_rest (
  org bigint NOT NULL,
  segment bigint NOT NULL,
  member bigint NOT NULL,
  first_code bigint NOT NULL,
  entries bytea NOT NULL,
  PRIMARY KEY (org, segment, member, first_code)
);
ALTER TABLE event_posting_rest ALTER COLUMN entries SET STORAGE EXTERNAL;

CREATE TABLE event_posting_filter (
  org bigint NOT NULL,
  member bigint NOT NULL,
  segment bigint NOT NULL,
  bits bytea NOT NULL,
  PRIMARY KEY (org, member, segment)
);
ALTER TABLE event_posting_filter ALTER COLUMN bits SET STORAGE EXTERNAL;

CREATE TABLE event_type_total (
  org bigint NOT NULL,
  type bigint NOT NULL,
  events bigint NOT NULL,
  PRIMARY KEY (org, type)
);

CREATE TABLE rollup_metric (
  org bigint NOT NULL,
  hour bigint NOT NULL, -- occurredAt / 3,600,000
  site bigint NOT NULL,
  type bigint NOT NULL,
  outcome bigint NOT NULL,
  live bigint NOT NULL,
  expired bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (org, hour, site, type, outcome)
);

CREATE TABLE rollup_value (
  org bigint NOT NULL,
  member bigint NOT NULL,
  hour bigint NOT NULL,
  site bigint NOT NULL,
  type bigint NOT NULL,
  outcome bigint NOT NULL,
  code bigint NOT NULL,
  live bigint NOT NULL,
  expired bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (org, member, hour, site, type, outcome, code)
);

-- Dedupe is a table of ids, where SQLite has id runs: several nodes append at once, and none has every id in memory.
-- `h` is the first 16 bytes of SHA-256 of seed, organization and id. The partitions are by hash: a partition by time
-- would miss duplicates across its border.
CREATE TABLE event_seed (seed bytea NOT NULL);
ALTER TABLE event_seed ALTER COLUMN seed SET STORAGE EXTERNAL;
INSERT INTO event_seed (seed) -- 40 random bytes
  SELECT sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
    || substring(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) FOR 8);

CREATE TABLE event_id (
  org bigint NOT NULL,
  h uuid NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (org, h)
) PARTITION BY HASH (org, h);
CREATE TABLE event_id_00 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 0);
CREATE TABLE event_id_01 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 1);
CREATE TABLE event_id_02 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 2);
CREATE TABLE event_id_03 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 3);
CREATE TABLE event_id_04 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 4);
CREATE TABLE event_id_05 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 5);
CREATE TABLE event_id_06 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 6);
CREATE TABLE event_id_07 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 7);
CREATE TABLE event_id_08 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 8);
CREATE TABLE event_id_09 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 9);
CREATE TABLE event_id_10 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 10);
CREATE TABLE event_id_11 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 11);
CREATE TABLE event_id_12 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 12);
CREATE TABLE event_id_13 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 13);
CREATE TABLE event_id_14 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 14);
CREATE TABLE event_id_15 PARTITION OF event_id FOR VALUES WITH (MODULUS 16, REMAINDER 15);
