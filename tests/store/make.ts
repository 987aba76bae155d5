/** Makes the records that store tests write, each call a new one with the given fields. */
import type {
  Account,
  ApiKey,
  AuditEntry,
  EventBatch,
  EventRecord,
  Org,
  SignIn,
} from '../../db/contract/store.ts'
import { newApiKey, newId, newToken, sha256Hex } from '../../server/ids.ts'

export const noon = Date.UTC(2026, 5, 1, 12)

export function makeOrg(fields: Partial<Org> = {}): Org {
  const id = newId('org')
  return { id, slug: id.toLowerCase(), name: 'Acme', createdAtMs: noon, ...fields }
}

export function makeAudit(orgId: string, fields: Partial<AuditEntry> = {}): AuditEntry {
  return {
    id: newId('aud'),
    orgId,
    actor: 'cli',
    action: 'test.done',
    target: 'thing_1',
    metadata: { label: 'a thing', before: null, after: { n: 1 } },
    occurredAtMs: noon,
    ...fields,
  }
}

export function makeAccount(fields: Partial<Account> = {}): Account {
  const id = newId('usr')
  const email = `${id.toLowerCase()}@example.org`
  return { id, email, passwordHash: '$argon2id$one', operator: false, createdAtMs: noon, ...fields }
}

export function makeSignIn(accountId: string, orgId: string, fields: Partial<SignIn> = {}): SignIn {
  return {
    id: newId('ses'),
    tokenHash: sha256Hex(newToken()),
    accountId,
    orgId,
    createdAtMs: noon,
    lastSeenAtMs: noon,
    expiresAtMs: noon + 7 * 86_400_000,
    address: '127.0.0.1',
    userAgent: 'test',
    byProvider: false,
    ...fields,
  }
}

export function makeKey(orgId: string, fields: Partial<ApiKey> = {}): ApiKey {
  const key = newApiKey(fields.kind ?? 'ingest')
  return {
    id: newId('key'),
    orgId,
    kind: 'ingest',
    label: 'backend',
    prefix: key.slice(0, 16),
    hash: sha256Hex(key),
    scopes: [],
    siteIds: [],
    behindProxy: false,
    createdAtMs: noon,
    expiresAtMs: null,
    revokedAtMs: null,
    lastUsedAtMs: null,
    lastUsedAddress: null,
    exposedAtMs: null,
    ...fields,
  }
}

/** `json` is made from the id unless passed. */
export function makeEvent(id: string, fields: Partial<EventRecord> = {}): EventRecord {
  return {
    id,
    siteId: 'shop-acme',
    sessionId: 'sess_1',
    occurredAtMs: noon,
    type: 'agent.detected',
    outcome: 'success',
    tool: null,
    durationMs: null,
    class: null,
    vendor: null,
    name: null,
    purpose: null,
    robots: null,
    trust: null,
    verdict: null,
    protocol: null,
    subject: null,
    page: null,
    decision: null,
    ruleId: null,
    reason: null,
    judgedBy: null,
    observedBy: null,
    evidence: null,
    network: null,
    json: JSON.stringify({ id }),
    ...fields,
  }
}

/** Arrives just after noon, or with the newest of its events: none is ahead of its arrival by default. */
export function makeBatch(orgId: string, events: EventRecord[]): EventBatch {
  const receivedAtMs = events.reduce((latest, { occurredAtMs }) => Math.max(latest, occurredAtMs), noon + 1)
  return { orgId, keyId: 'key_test', door: 'events', receivedAtMs, events }
}
