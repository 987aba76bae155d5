-- What became of OpenTelemetry items, by hour of arrival and instrumentation scope.
CREATE TABLE ingest_scope (
  org_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  scope TEXT NOT NULL,
  mapped INTEGER NOT NULL,
  model_calls INTEGER NOT NULL,
  left_out INTEGER NOT NULL,
  refused INTEGER NOT NULL,
  PRIMARY KEY (org_id, hour, scope)
) STRICT, WITHOUT ROWID;
