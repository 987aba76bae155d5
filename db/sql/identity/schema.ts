/** Declares the identity tables for drizzle. The migrations create them; a test compares the two. */
import { integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { KeyKind, OneTimeLink, Role } from '../../contract/store.ts'

export const org = sqliteTable('org', {
  id: text('id').primaryKey().notNull(),
  slug: text('slug').notNull().unique(),
  name: text('name').notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
})

export const orgDeletion = sqliteTable('org_deletion', {
  orgId: text('org_id').primaryKey().notNull(),
  askedAtMs: integer('asked_at_ms').notNull(),
  dueAtMs: integer('due_at_ms').notNull(),
})

export const orgSignInRule = sqliteTable('org_sign_in_rule', {
  orgId: text('org_id').primaryKey().notNull(),
  secondFactorRequired: integer('second_factor_required', { mode: 'boolean' }).notNull(),
})

export const site = sqliteTable(
  'site',
  {
    orgId: text('org_id').notNull(),
    siteId: text('site_id').notNull(),
    name: text('name'),
    hidden: integer('hidden', { mode: 'boolean' }).notNull(),
    restricted: integer('restricted', { mode: 'boolean' }).notNull(),
    hosts: text('hosts', { mode: 'json' }).$type<string[]>().notNull().default([]),
  },
  (table) => [primaryKey({ columns: [table.orgId, table.siteId] })],
)

export const savedView = sqliteTable('saved_view', {
  id: text('id').primaryKey().notNull(),
  orgId: text('org_id').notNull(),
  name: text('name').notNull(),
  search: text('search').notNull(),
  createdBy: text('created_by').notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
})

export const account = sqliteTable('account', {
  id: text('id').primaryKey().notNull(),
  email: text('email').notNull().unique(),
  passwordHash: text('password_hash').notNull(),
  operator: integer('operator', { mode: 'boolean' }).notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
})

export const membership = sqliteTable(
  'membership',
  {
    accountId: text('account_id').notNull(),
    orgId: text('org_id').notNull(),
    role: text('role').$type<Role>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.orgId] })],
)

export const oneTimeLink = sqliteTable('one_time_link', {
  hash: text('hash').primaryKey().notNull(),
  purpose: text('purpose').$type<OneTimeLink['purpose']>().notNull(),
  accountId: text('account_id'),
  expiresAtMs: integer('expires_at_ms').notNull(),
  sealedToken: text('sealed_token'),
})

export const signIn = sqliteTable('sign_in', {
  id: text('id').primaryKey().notNull(),
  tokenHash: text('token_hash').notNull().unique(),
  accountId: text('account_id').notNull(),
  orgId: text('org_id').notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
  lastSeenAtMs: integer('last_seen_at_ms').notNull(),
  expiresAtMs: integer('expires_at_ms').notNull(),
  address: text('address').notNull(),
  userAgent: text('user_agent').notNull(),
  byProvider: integer('by_provider', { mode: 'boolean' }).notNull().default(false),
})

export const accountNetwork = sqliteTable(
  'account_network',
  {
    accountId: text('account_id').notNull(),
    network: text('network').notNull(),
    lastAtMs: integer('last_at_ms').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.network] })],
)

export const invitation = sqliteTable('invitation', {
  id: text('id').primaryKey().notNull(),
  hash: text('hash').notNull().unique(),
  orgId: text('org_id').notNull(),
  email: text('email').notNull(),
  role: text('role').$type<Role>().notNull(),
  invitedBy: text('invited_by').notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
  expiresAtMs: integer('expires_at_ms').notNull(),
})

export const secondFactor = sqliteTable('second_factor', {
  accountId: text('account_id').primaryKey().notNull(),
  encryptedSeed: text('sealed_seed').notNull(),
  lastStep: integer('last_step').notNull(),
  sinceMs: integer('since_ms').notNull(),
})

export const recoveryCode = sqliteTable(
  'recovery_code',
  { accountId: text('account_id').notNull(), hash: text('hash').notNull() },
  (table) => [primaryKey({ columns: [table.accountId, table.hash] })],
)

export const externalIdentity = sqliteTable(
  'external_identity',
  {
    issuer: text('issuer').notNull(),
    subject: text('subject').notNull(),
    accountId: text('account_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.issuer, table.subject] })],
)

export const apiKey = sqliteTable('api_key', {
  id: text('id').primaryKey().notNull(),
  orgId: text('org_id').notNull(),
  kind: text('kind').$type<KeyKind>().notNull(),
  label: text('label').notNull(),
  prefix: text('prefix').notNull(),
  hash: text('hash').notNull().unique(),
  scopes: text('scopes', { mode: 'json' }).$type<string[]>().notNull(),
  siteIds: text('site_ids', { mode: 'json' }).$type<string[]>().notNull(),
  behindProxy: integer('behind_proxy', { mode: 'boolean' }).notNull(),
  createdAtMs: integer('created_at_ms').notNull(),
  expiresAtMs: integer('expires_at_ms'),
  revokedAtMs: integer('revoked_at_ms'),
  lastUsedAtMs: integer('last_used_at_ms'),
  lastUsedAddress: text('last_used_address'),
  exposedAtMs: integer('exposed_at_ms'),
})

export const storeSecret = sqliteTable('store_secret', {
  name: text('name').primaryKey().notNull(),
  value: text('value').notNull(),
})

export const rejectedSample = sqliteTable('rejected_sample', {
  seq: integer('seq').primaryKey({ autoIncrement: true }),
  orgId: text('org_id').notNull(),
  keyId: text('key_id').notNull(),
  atMs: integer('at_ms').notNull(),
  code: text('code').notNull(),
  message: text('message').notNull(),
  path: text('path').notNull(),
  excerpt: text('excerpt').notNull(),
})
