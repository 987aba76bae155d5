-- What became of OpenTelemetry items, by hour of arrival and instrumentation scope.
CREATE TABLE ingest_scope (
  org_id text COLLATE "C" NOT NULL,
  hour bigint NOT NULL,
  scope text COLLATE "C" NOT NULL,
  mapped bigint NOT NULL,
  model_calls bigint NOT NULL,
  left_out bigint NOT NULL,
  refused bigint NOT NULL,
  PRIMARY KEY (org_id, hour, scope)
);

-- Adds the counts of a group to those of one organization, in the statement of its events. Scopes beyond p_max in an
-- hour are counted as `(other)`.
CREATE FUNCTION append_scopes(p_schema bigint, p_org bigint, p_scopes text, p_max bigint, p_kept_hour bigint)
RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT SET lock_timeout = '5s' AS $$
DECLARE
  v_org_id text;
BEGIN
  PERFORM begin_write(p_schema);
  SELECT org_id INTO STRICT v_org_id FROM event_org WHERE num = p_org FOR UPDATE;
  INSERT INTO ingest_scope AS known (org_id, hour, scope, mapped, model_calls, left_out, refused)
    SELECT v_org_id, hour, CASE WHEN is_known OR place <= p_max THEN scope ELSE '(other)' END COLLATE "C" AS name,
      sum(mapped), sum(model_calls), sum(left_out), sum(refused)
    FROM (
      SELECT *, stored + count(*) FILTER (WHERE NOT is_known) OVER (PARTITION BY hour ORDER BY scope COLLATE "C") AS place
      FROM (
        SELECT s.*,
          EXISTS (SELECT 1 FROM ingest_scope AS k
            WHERE k.org_id = v_org_id AND k.hour = s.hour AND k.scope = s.scope COLLATE "C") AS is_known,
          (SELECT count(*) FROM ingest_scope AS k WHERE k.org_id = v_org_id AND k.hour = s.hour) AS stored
        FROM jsonb_to_recordset(p_scopes::jsonb) AS s (hour bigint, scope text, mapped bigint, model_calls bigint,
          left_out bigint, refused bigint)
      ) AS sent
    ) AS placed
    GROUP BY hour, name ORDER BY hour, name
    ON CONFLICT (org_id, hour, scope) DO UPDATE SET
      mapped = known.mapped + excluded.mapped, model_calls = known.model_calls + excluded.model_calls,
      left_out = known.left_out + excluded.left_out, refused = known.refused + excluded.refused;
  DELETE FROM ingest_scope WHERE org_id = v_org_id AND hour < p_kept_hour;
  RETURN 0;
END $$;
