-- What the first use and the fault run asked for: one section per feature.

-- Which set of fields a sealed segment's index covers. A segment of an older set is scanned for the fields it lacks.
-- `fillFields` gives every stored event its agent's name and purpose and, when its clock was far ahead, its time of
-- arrival, and brings the index of every segment to version 2, in this transaction.
ALTER TABLE event_segment ADD COLUMN index_version INTEGER NOT NULL DEFAULT 1;

-- The networks (an IPv4 address, the /64 of an IPv6 one) from which an account signed in. An attacker who keeps an
-- account throttled keeps nobody out who comes from one of them.
CREATE TABLE account_network (
  account_id TEXT NOT NULL REFERENCES account (id) ON DELETE CASCADE,
  network TEXT NOT NULL,
  last_at_ms INTEGER NOT NULL,
  PRIMARY KEY (account_id, network)
) STRICT, WITHOUT ROWID;

-- Filters of Logs under a name, shared by the members of an organization. Browsers kept them before, each its own.
CREATE TABLE saved_view (
  id TEXT PRIMARY KEY NOT NULL,
  org_id TEXT NOT NULL REFERENCES org (id),
  name TEXT NOT NULL,
  search TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX saved_view_name ON saved_view (org_id, name);
-- Webhooks: an endpoint's own waits before its retries, a JSON list of milliseconds (NULL: those of the server), and
-- who took on an alert, and when.
ALTER TABLE webhook_endpoint ADD COLUMN retry_waits_ms TEXT;
ALTER TABLE webhook_incident ADD COLUMN acknowledged_at_ms INTEGER;
ALTER TABLE webhook_incident ADD COLUMN acknowledged_by TEXT;
-- What an organization asks of its members before they see its data. A sign-in through an identity provider counts as
-- one with a second factor: the provider asks for its own.
CREATE TABLE org_sign_in_rule (
  org_id TEXT PRIMARY KEY NOT NULL REFERENCES org (id),
  second_factor_required INTEGER NOT NULL CHECK (second_factor_required IN (0, 1))
) STRICT;

ALTER TABLE sign_in ADD COLUMN by_provider INTEGER NOT NULL DEFAULT 0 CHECK (by_provider IN (0, 1));

-- Fields that senders probably misspelt, by hour of arrival and key; counted of the events that were looked at.
CREATE TABLE ingest_near_miss (
  org_id TEXT NOT NULL,
  hour INTEGER NOT NULL,
  key_id TEXT NOT NULL,
  path TEXT NOT NULL,
  known TEXT NOT NULL,
  events INTEGER NOT NULL,
  PRIMARY KEY (org_id, hour, key_id, path)
) STRICT, WITHOUT ROWID;
