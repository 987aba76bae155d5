-- The versions of each site's robots.txt, so that a request is judged by the one in force at its time.
CREATE TABLE robots_version (
  org_id TEXT NOT NULL,
  site_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  from_ms INTEGER NOT NULL, -- in force from here until the next one
  set_at_ms INTEGER NOT NULL,
  set_by TEXT NOT NULL, -- as an audit actor
  digest TEXT NOT NULL, -- SHA-256 of the text
  bytes INTEGER NOT NULL, -- of the text
  content BLOB NOT NULL, -- the text, zstd
  PRIMARY KEY (org_id, site_id, version)
) STRICT;
CREATE UNIQUE INDEX robots_version_from ON robots_version (org_id, site_id, from_ms);
