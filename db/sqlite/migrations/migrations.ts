/** Every migration of the SQLite engine in order, embedded as text. */
import type { SqliteMigration } from './migrate.ts'
import { fillClassVendor, fillFields } from './fills.ts'
import identity from './0001_identity.sql' with { type: 'text' }
import events from './0002_events.sql' with { type: 'text' }
import webhooks from './0003_webhooks.sql' with { type: 'text' }
import registry from './0004_registry.sql' with { type: 'text' }
import identityMore from './0005_identity_more.sql' with { type: 'text' }
import retention from './0006_retention.sql' with { type: 'text' }
import auditTrim from './0007_audit_trim.sql' with { type: 'text' }
import postingFilter from './0008_posting_filter.sql' with { type: 'text' }
import webhookReplay from './0009_webhook_replay.sql' with { type: 'text' }
import classVendor from './0010_class_vendor.sql' with { type: 'text' }
import bodyFrames from './0011_body_frames.sql' with { type: 'text' }
import hourRewrites from './0012_hour_rewrites.sql' with { type: 'text' }
import firstUse from './0013_first_use.sql' with { type: 'text' }

export const migrations: readonly SqliteMigration[] = [
  { version: 1, name: '0001_identity', sql: identity },
  { version: 2, name: '0002_events', sql: events },
  { version: 3, name: '0003_webhooks', sql: webhooks },
  { version: 4, name: '0004_registry', sql: registry },
  { version: 5, name: '0005_identity_more', sql: identityMore },
  { version: 6, name: '0006_retention', sql: retention },
  { version: 7, name: '0007_audit_trim', sql: auditTrim },
  { version: 8, name: '0008_posting_filter', sql: postingFilter },
  { version: 9, name: '0009_webhook_replay', sql: webhookReplay },
  { version: 10, name: '0010_class_vendor', sql: classVendor, fill: fillClassVendor },
  { version: 11, name: '0011_body_frames', sql: bodyFrames },
  { version: 12, name: '0012_hour_rewrites', sql: hourRewrites },
  { version: 13, name: '0013_first_use', sql: firstUse, fill: fillFields },
]
