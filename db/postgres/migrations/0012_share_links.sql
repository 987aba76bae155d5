-- Pages that anybody with the link may read. Only the SHA-256 of a link's token is stored.
CREATE TABLE share_link (
  id text COLLATE "C" PRIMARY KEY NOT NULL,
  org_id text COLLATE "C" NOT NULL,
  token_hash text COLLATE "C" NOT NULL UNIQUE,
  name text COLLATE "C" NOT NULL,
  content text COLLATE "C" NOT NULL, -- JSON of what is shown
  created_by text COLLATE "C" NOT NULL, -- account id
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL,
  revoked_at_ms bigint,
  opened bigint NOT NULL DEFAULT 0,
  last_opened_at_ms bigint,
  audited_opened bigint NOT NULL DEFAULT 0, -- how many of them the audit log has
  audited_at_ms bigint
);
CREATE INDEX share_link_org ON share_link (org_id, created_at_ms);
