-- Rules that compare a measure with a number or with its own past; pending alerts.
CREATE TABLE webhook_rule_next (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL REFERENCES org (id),
  endpoint_id TEXT NOT NULL REFERENCES webhook_endpoint (id),
  kind TEXT NOT NULL
    CHECK (kind IN ('new_vendor', 'blocked_share', 'tool_error_rate', 'silence', 'key_leaked', 'measure')),
  threshold REAL,
  minutes INTEGER,
  events_min INTEGER,
  created_at_ms INTEGER NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  definition TEXT, -- JSON, of the kind measure
  from_file INTEGER NOT NULL DEFAULT 0 CHECK (from_file IN (0, 1)), -- defined in the setup file
  silenced_until_ms INTEGER
) STRICT;
INSERT INTO webhook_rule_next (id, org_id, endpoint_id, kind, threshold, minutes, events_min, created_at_ms)
  SELECT id, org_id, endpoint_id, kind, threshold, minutes, events_min, created_at_ms FROM webhook_rule;
DROP TABLE webhook_rule;
ALTER TABLE webhook_rule_next RENAME TO webhook_rule;
CREATE INDEX webhook_rule_org ON webhook_rule (org_id);
CREATE INDEX webhook_rule_endpoint ON webhook_rule (endpoint_id);

ALTER TABLE webhook_incident ADD COLUMN state TEXT NOT NULL DEFAULT 'firing' CHECK (state IN ('pending', 'firing'));
ALTER TABLE webhook_incident ADD COLUMN clear_since_ms INTEGER; -- the condition no longer holds
