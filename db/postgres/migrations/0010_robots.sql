-- The versions of each site's robots.txt, so that a request is judged by the one in force at its time.
CREATE TABLE robots_version (
  org_id text COLLATE "C" NOT NULL,
  site_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  from_ms bigint NOT NULL, -- in force from here until the next one
  set_at_ms bigint NOT NULL,
  set_by text COLLATE "C" NOT NULL, -- as an audit actor
  digest text COLLATE "C" NOT NULL, -- SHA-256 of the text
  bytes bigint NOT NULL, -- of the text
  content bytea NOT NULL, -- the text, zstd
  PRIMARY KEY (org_id, site_id, version)
);
ALTER TABLE robots_version ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX robots_version_from ON robots_version (org_id, site_id, from_ms);
