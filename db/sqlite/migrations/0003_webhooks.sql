-- Webhooks: signing secrets (sealed by the server), endpoints, deliveries with their attempts, rules and incidents.

CREATE TABLE webhook_org_secret (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES org (id),
  sealed_secret TEXT NOT NULL,
  previous_sealed_secret TEXT,
  previous_until_ms INTEGER
) STRICT;

-- The four filters are JSON lists of text. `lane` is the endpoint's id: what limits sends at a time.
CREATE TABLE webhook_endpoint (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL REFERENCES org (id),
  url TEXT NOT NULL,
  label TEXT NOT NULL,
  types TEXT NOT NULL,
  outcomes TEXT NOT NULL,
  classes TEXT NOT NULL,
  site_ids TEXT NOT NULL,
  batch_size INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'paused')),
  paused_reason TEXT CHECK (paused_reason IN ('asked', 'gone', 'failing')),
  paused_at_ms INTEGER,
  position INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  missed INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  last_success_at_ms INTEGER,
  failing_since_ms INTEGER,
  next_probe_at_ms INTEGER,
  sealed_secret TEXT NOT NULL,
  previous_sealed_secret TEXT,
  previous_until_ms INTEGER,
  CHECK ((status = 'paused') = (paused_reason IS NOT NULL))
) STRICT;

CREATE INDEX webhook_endpoint_org ON webhook_endpoint (org_id);

-- `seq` is the order of the lists; endpoints are not referenced, for a delivery outlives its endpoint.
CREATE TABLE webhook_delivery (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  org_id TEXT NOT NULL REFERENCES org (id),
  endpoint_id TEXT,
  url TEXT NOT NULL,
  lane TEXT NOT NULL,
  body TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'dead_letter')),
  attempts INTEGER NOT NULL,
  interruptions INTEGER NOT NULL,
  probe INTEGER NOT NULL CHECK (probe IN (0, 1)),
  next_attempt_at_ms INTEGER,
  lease_id TEXT,
  leased_until_ms INTEGER,
  leased_at_ms INTEGER,
  last_error TEXT,
  last_status INTEGER,
  scheduled_at_ms INTEGER NOT NULL,
  pending_since_ms INTEGER NOT NULL,
  delivered_at_ms INTEGER,
  ended_at_ms INTEGER,
  CHECK ((status = 'pending') = (next_attempt_at_ms IS NOT NULL)),
  CHECK (status = 'pending' OR lease_id IS NULL)
) STRICT;

CREATE INDEX webhook_delivery_org ON webhook_delivery (org_id, seq);
CREATE INDEX webhook_delivery_org_status ON webhook_delivery (org_id, status, seq);
CREATE INDEX webhook_delivery_endpoint ON webhook_delivery (endpoint_id, status, seq);
-- A claim visits the first due delivery of each lane, however many wait behind it.
CREATE INDEX webhook_delivery_waiting ON webhook_delivery (lane, next_attempt_at_ms, seq)
  WHERE status = 'pending' AND lease_id IS NULL;
CREATE INDEX webhook_delivery_leased ON webhook_delivery (lane, leased_until_ms) WHERE lease_id IS NOT NULL;
CREATE INDEX webhook_delivery_probe ON webhook_delivery (lane) WHERE probe = 1;
CREATE INDEX webhook_delivery_ended ON webhook_delivery (status, ended_at_ms) WHERE ended_at_ms IS NOT NULL;

CREATE TABLE webhook_attempt (
  delivery_seq INTEGER NOT NULL,
  number INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  status INTEGER,
  duration_ms INTEGER NOT NULL,
  response_excerpt TEXT NOT NULL,
  error TEXT,
  counted INTEGER NOT NULL CHECK (counted IN (0, 1)),
  PRIMARY KEY (delivery_seq, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_rule (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL REFERENCES org (id),
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoint (id),
  kind TEXT NOT NULL
    CHECK (kind IN ('new_vendor', 'blocked_share', 'tool_error_rate', 'silence', 'key_leaked')),
  threshold REAL,
  minutes INTEGER,
  events_min INTEGER,
  created_at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX webhook_rule_org ON webhook_rule (org_id);
CREATE INDEX webhook_rule_endpoint ON webhook_rule (endpoint_id);

-- Rules are not referenced: what they found outlives them. `data` is JSON.
CREATE TABLE webhook_incident (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL,
  rule_id TEXT NOT NULL,
  subject TEXT NOT NULL,
  opened_at_ms INTEGER NOT NULL,
  resolved_at_ms INTEGER,
  data TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX webhook_incident_open ON webhook_incident (rule_id, subject) WHERE resolved_at_ms IS NULL;
CREATE INDEX webhook_incident_subject ON webhook_incident (rule_id, subject);
CREATE INDEX webhook_incident_org ON webhook_incident (org_id, opened_at_ms);
