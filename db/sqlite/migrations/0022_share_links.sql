-- Pages that anybody with the link may read. Only the SHA-256 of a link's token is stored.
CREATE TABLE share_link (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL,
  token_hash TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  content TEXT NOT NULL, -- JSON of what is shown
  created_by TEXT NOT NULL, -- account id
  created_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER NOT NULL,
  revoked_at_ms INTEGER,
  opened INTEGER NOT NULL DEFAULT 0,
  last_opened_at_ms INTEGER,
  audited_opened INTEGER NOT NULL DEFAULT 0, -- how many of them the audit log has
  audited_at_ms INTEGER
) STRICT;
CREATE INDEX share_link_org ON share_link (org_id, created_at_ms);
