/** Declares the webhook tables for drizzle. Migrations 0003, 0009, 0013 and 0023 create them. */
import { integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { Json } from '../../contract/audit.ts'
import type { Incident, MeasureDefinition, RuleKind } from '../../contract/alerts.ts'
import type { DeliveryStatus, Endpoint, PauseReason } from '../../contract/webhooks.ts'

export const orgSecretTable = sqliteTable('webhook_org_secret', {
  orgId: text('org_id').primaryKey().notNull(),
  encryptedSecret: text('sealed_secret').notNull(),
  previousEncryptedSecret: text('previous_sealed_secret'),
  previousUntilMs: integer('previous_until_ms'),
})

const texts = (name: string) => text(name, { mode: 'json' }).$type<string[]>().notNull()

export const endpointTable = sqliteTable('webhook_endpoint', {
  id: text('id').primaryKey().notNull(),
  orgId: text('org_id').notNull(),
  url: text('url').notNull(),
  label: text('label').notNull(),
  types: texts('types'),
  outcomes: texts('outcomes'),
  classes: texts('classes'),
  siteIds: texts('site_ids'),
  batchSize: integer('batch_size').notNull(),
  status: text('status').$type<Endpoint['status']>().notNull(),
  pausedReason: text('paused_reason').$type<PauseReason>(),
  pausedAtMs: integer('paused_at_ms'),
  position: integer('position').notNull(),
  sequence: integer('sequence').notNull(),
  missed: integer('missed').notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
  lastSuccessAtMs: integer('last_success_at_ms'),
  failingSinceMs: integer('failing_since_ms'),
  nextProbeAtMs: integer('next_probe_at_ms'),
  encryptedSecret: text('sealed_secret').notNull(),
  previousEncryptedSecret: text('previous_sealed_secret'),
  previousUntilMs: integer('previous_until_ms'),
  replayUntil: integer('replay_until'),
  resumePosition: integer('resume_position'),
  retryWaitsMs: text('retry_waits_ms', { mode: 'json' }).$type<number[]>(),
})

export const deliveryTable = sqliteTable('webhook_delivery', {
  seq: integer('seq').primaryKey({ autoIncrement: true }),
  id: text('id').notNull().unique(),
  orgId: text('org_id').notNull(),
  endpointId: text('endpoint_id'),
  url: text('url').notNull(),
  lane: text('lane').notNull(),
  body: text('body').notNull(),
  status: text('status').$type<DeliveryStatus>().notNull(),
  attempts: integer('attempts').notNull(),
  interruptions: integer('interruptions').notNull(), // expired leases in a row
  probe: integer('probe', { mode: 'boolean' }).notNull(),
  nextAttemptAtMs: integer('next_attempt_at_ms'),
  leaseId: text('lease_id'),
  leasedUntilMs: integer('leased_until_ms'),
  leasedAtMs: integer('leased_at_ms'),
  lastError: text('last_error'),
  lastStatus: integer('last_status'),
  scheduledAtMs: integer('scheduled_at_ms').notNull(),
  pendingSinceMs: integer('pending_since_ms').notNull(),
  deliveredAtMs: integer('delivered_at_ms'),
  endedAtMs: integer('ended_at_ms'),
})

export const attemptTable = sqliteTable(
  'webhook_attempt',
  {
    deliverySeq: integer('delivery_seq').notNull(),
    number: integer('number').notNull(),
    atMs: integer('at_ms').notNull(),
    status: integer('status'),
    durationMs: integer('duration_ms').notNull(),
    responseExcerpt: text('response_excerpt').notNull(),
    error: text('error'),
    counted: integer('counted', { mode: 'boolean' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.deliverySeq, table.number] })],
)

export const ruleTable = sqliteTable('webhook_rule', {
  id: text('id').primaryKey().notNull(),
  orgId: text('org_id').notNull(),
  endpointId: text('endpoint_id').notNull(),
  kind: text('kind').$type<RuleKind>().notNull(),
  threshold: real('threshold'),
  minutes: integer('minutes'),
  eventsMin: integer('events_min'),
  createdAtMs: integer('created_at_ms').notNull(),
  name: text('name').notNull(),
  definition: text('definition', { mode: 'json' }).$type<MeasureDefinition>(),
  fromFile: integer('from_file', { mode: 'boolean' }).notNull(),
  silencedUntilMs: integer('silenced_until_ms'),
})

export const incidentTable = sqliteTable('webhook_incident', {
  id: text('id').primaryKey().notNull(),
  orgId: text('org_id').notNull(),
  ruleId: text('rule_id').notNull(),
  subject: text('subject').notNull(),
  openedAtMs: integer('opened_at_ms').notNull(),
  resolvedAtMs: integer('resolved_at_ms'),
  data: text('data', { mode: 'json' }).$type<{ [member: string]: Json }>().notNull(),
  acknowledgedAtMs: integer('acknowledged_at_ms'),
  acknowledgedBy: text('acknowledged_by'),
  state: text('state').$type<Incident['state']>().notNull(),
  clearSinceMs: integer('clear_since_ms'),
})
