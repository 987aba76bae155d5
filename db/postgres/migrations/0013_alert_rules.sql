-- Rules that compare a measure with a number or with its own past; pending alerts.
ALTER TABLE webhook_rule DROP CONSTRAINT webhook_rule_kind_check;
ALTER TABLE webhook_rule ADD CONSTRAINT webhook_rule_kind_check
  CHECK (kind IN ('new_vendor', 'blocked_share', 'tool_error_rate', 'silence', 'key_leaked', 'measure'));
ALTER TABLE webhook_rule ADD COLUMN name text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE webhook_rule ADD COLUMN definition text COLLATE "C"; -- JSON, of the kind measure
ALTER TABLE webhook_rule ADD COLUMN from_file bigint NOT NULL DEFAULT 0 CHECK (from_file IN (0, 1)); -- defined in the setup file
ALTER TABLE webhook_rule ADD COLUMN silenced_until_ms bigint;

ALTER TABLE webhook_incident ADD COLUMN state text COLLATE "C" NOT NULL DEFAULT 'firing'
  CHECK (state IN ('pending', 'firing'));
ALTER TABLE webhook_incident ADD COLUMN clear_since_ms bigint; -- the condition no longer holds
