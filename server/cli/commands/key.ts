/** `sightglass key`: creates, lists, revokes, rotates and changes the keys of an organization. */
import type { ApiKey, Json, KeyKind } from '../../../db/contract/store.ts'
import { isoTime } from '../../clock.ts'
import { UsageError } from '../../errors.ts'
import { changeKey, mintKey, revokeKey, rotateKey, scopes } from '../../identity/keys/keys.ts'
import { limits } from '../../limits.ts'
import { flagOf, textOf, textOrNull, textsOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { explicitValue, type Invocation, type Noun } from '../command.ts'
import { dataCommand, orgOfKey, requireOrg } from '../data-command.ts'
import { choice, readExpiry, readSpan, text, textList, toggle } from '../option.ts'
import { orgOption } from '../options.ts'
import { cell, minute, table, type Answer } from '../print.ts'

const kinds = ['ingest', 'secret', 'publishable'] as const

const grantOptions = {
  site: {
    read: textList,
    value: 'ID[,ID]',
    default: '',
    help: 'sites an ingest key may write to, by default every site',
    adds: true,
  },
  scope: {
    read: textList,
    choices: scopes,
    value: 'SCOPE[,SCOPE]',
    default: '',
    help: 'scopes of a secret key, by default all',
    adds: true,
  },
  'behind-proxy': toggle('accept browser headers that a forwarding proxy leaves in place'),
} as const

export const key: Noun = {
  group: 'Sites and keys',
  commands: [
    dataCommand({
      name: 'key create',
      summary: 'create a key and show it once',
      about: [
        'An ingest key writes events and stays on your server. A secret key reads through the API. A publishable key identifies the organization in a browser and grants nothing.',
      ],
      examples: [
        'sightglass key create --kind ingest --label "shop backend" --site shop-acme',
        'sightglass key create --kind secret --label export --scope traces:read --expires 90d --json',
      ],
      options: {
        kind: { ...choice(kinds, 'kind of the key'), needed: true },
        label: { ...text('TEXT', 'purpose of the key, at most 80 characters'), needed: true },
        ...orgOption,
        ...grantOptions,
        expires: text('TIME', 'when the key expires: 90d, 12h, 2027-01-31 or 2027-01-31T18:00:00Z'),
      },
      access: 'create',
      params({ values }) {
        const { kind, label, org, site, scope, expires } = values
        return { kind, label, org, site, scope, expires, behindProxy: values['behind-proxy'] }
      },
      work: create,
      print: createdText,
    }),
    dataCommand({
      name: 'key list',
      summary: 'list the keys of an organization',
      examples: ['sightglass key list --kind ingest'],
      options: { ...orgOption, kind: choice(kinds, 'only keys of this kind') },
      access: 'read',
      params: ({ values: { org, kind } }) => ({ org, kind }),
      async work({ store, clock }, params) {
        const org = await requireOrg(store, textOf(params, 'org'))
        const kind = textOrNull(params, 'kind') as KeyKind | null
        const keys = await store.keys.list({ orgId: org.id, ...(kind !== null && { kind }) })
        return { keys: keys.map((apiKey) => ({ ...keyView(apiKey), state: stateOf(apiKey, clock.now()) })) }
      },
      print: ({ keys }) =>
        table(
          keys,
          'No keys. Create one with "sightglass key create".',
          ['ID', 'KIND', 'LABEL', 'PREFIX', 'CREATED', 'LAST USED', 'STATE'],
          ({ id, kind, label, prefix, createdAt, lastUsedAt, state }) => [
            cell(id),
            cell(kind),
            cell(label),
            `${cell(prefix)}…`,
            minute(createdAt),
            lastUsedAt === null ? 'never' : minute(lastUsedAt),
            cell(state),
          ],
        ),
    }),
    dataCommand({
      name: 'key revoke',
      summary: 'revoke a key; its next request is refused',
      arguments: 'KEY_ID',
      usage: 'KEY_ID [--org SLUG|ID]',
      examples: ['sightglass key revoke key_3q2uVbkz0c5mYw1n8sJx4A'],
      options: { ...orgOption, id: text('ID', 'id of the key, instead of the argument') },
      access: 'write',
      params: (invocation) => keyIn(invocation, invocation.values.id),
      async work({ store, clock }, params) {
        const keyId = textOf(params, 'id')
        const orgId = await orgOfKey(store, keyId, textOrNull(params, 'org'))
        return keyView(await revokeKey(store, { orgId, keyId, actor: 'cli' }, clock))
      },
      print: (answer) => `Revoked ${describeKey(answer)}.`,
    }),
    dataCommand({
      name: 'key rotate',
      summary: 'create a successor of a key; the old key works for a while longer',
      arguments: 'KEY_ID',
      about: ['The new key has the same label, sites and scopes. It is shown once.'],
      examples: ['sightglass key rotate key_3q2uVbkz0c5mYw1n8sJx4A --overlap 7d'],
      options: {
        ...orgOption,
        overlap: { ...text('SPAN', 'how long the old key keeps working: 0h, 12h, 7d'), default: '24h' },
      },
      access: 'write',
      params: (invocation) => ({ ...keyIn(invocation), overlap: invocation.values.overlap }),
      async work(context, params) {
        const keyId = textOf(params, 'id')
        const overlap = textOf(params, 'overlap')
        const overlapMs = readSpan(overlap)
        if (overlapMs === null)
          throw new UsageError(`--overlap "${overlap}" is not a span such as 0h, 12h or 7d`)
        const orgId = await orgOfKey(context.store, keyId, textOrNull(params, 'org'))
        const rotation = await rotateKey(context, { orgId, actor: 'cli' }, keyId, overlapMs)
        return { key: rotation.secret, ...keyView(rotation.key), old: keyView(rotation.old) }
      },
      print: createdText,
    }),
    dataCommand({
      name: 'key change',
      summary: 'change the label, sites, scopes or proxy setting of a key',
      arguments: 'KEY_ID',
      about: ['Options that are not given stay as they are. Empty --site= and --scope= remove the limits.'],
      examples: ['sightglass key change key_3q2uVbkz0c5mYw1n8sJx4A --site shop-acme,shop-beta'],
      options: {
        ...orgOption,
        label: text('TEXT', 'purpose of the key, at most 80 characters'),
        ...grantOptions,
      },
      access: 'write',
      params(invocation) {
        const { label, site, scope, 'behind-proxy': behindProxy } = invocation.values
        return {
          ...keyIn(invocation),
          label: explicitValue(invocation, 'label', label),
          site: explicitValue(invocation, 'site', site),
          scope: explicitValue(invocation, 'scope', scope),
          behindProxy: explicitValue(invocation, 'behind-proxy', behindProxy),
        }
      },
      work: change,
      print: (answer) => `Changed ${describeKey(answer)}.`,
    }),
  ],
}

/** The id of the key, and its organization only if the user named one. */
function keyIn(invocation: Invocation<typeof orgOption>, id: string | null = null): Params {
  const { command, words, values } = invocation
  const word = words[0] ?? id
  if (word === null)
    throw new UsageError(`"sightglass ${command.name}" needs the id of a key`, 'sightglass key list')
  return { id: word, org: explicitValue(invocation, 'org', values.org) }
}

async function create({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const kind = textOf(params, 'kind') as KeyKind
  const expires = textOrNull(params, 'expires')
  const org = await requireOrg(store, textOf(params, 'org'))
  const request = {
    orgId: org.id,
    kind,
    label: textOf(params, 'label'),
    actor: 'cli',
    scopes: readScopes(kind, textsOf(params, 'scope')),
    siteIds: readSites(kind, textsOf(params, 'site')),
    behindProxy: readBehindProxy(kind, flagOf(params, 'behindProxy')),
    expiresAtMs: expires === null ? null : readExpiry(expires, clock.now()),
  }
  const mintedKey = await mintKey(store, request, clock)
  return { key: mintedKey.secret, ...keyView(mintedKey.key) }
}

async function change(context: WorkContext, params: Params): Promise<Json> {
  const keyId = textOf(params, 'id')
  const orgId = await orgOfKey(context.store, keyId, textOrNull(params, 'org'))
  const listOf = (name: string) => ((params[name] ?? null) === null ? undefined : textsOf(params, name))
  const behindProxy = params['behindProxy']
  const changes = {
    label: textOrNull(params, 'label') ?? undefined,
    siteIds: listOf('site'),
    scopes: listOf('scope'),
    behindProxy: typeof behindProxy === 'boolean' ? behindProxy : undefined,
  }
  return keyView(await changeKey(context, { orgId, actor: 'cli' }, keyId, changes))
}

function readScopes(kind: KeyKind, scopeNames: string[]): string[] {
  if (scopeNames.length > 0 && kind !== 'secret')
    throw new UsageError(`--scope is for secret keys only, not for ${kind} keys`)
  const unknown = scopeNames.find((scope) => !scopes.some((knownScope) => knownScope === scope))
  if (unknown !== undefined)
    throw new UsageError(`"${unknown}" is not a scope`, `scopes: ${scopes.join(', ')}`)
  return [...new Set(scopeNames)]
}

function readSites(kind: KeyKind, siteIds: string[]): string[] {
  if (siteIds.length > 0 && kind !== 'ingest')
    throw new UsageError(`--site is for ingest keys only, not for ${kind} keys`)
  if (siteIds.some((site) => [...site].length > limits.idCharsMax))
    throw new UsageError(`a site id has at most ${limits.idCharsMax} characters`)
  return [...new Set(siteIds)]
}

function readBehindProxy(kind: KeyKind, isBehindProxy: boolean): boolean {
  if (isBehindProxy && kind !== 'ingest') throw new UsageError('--behind-proxy is for ingest keys only')
  return isBehindProxy
}

function stateOf({ revokedAtMs, expiresAtMs }: ApiKey, nowMs: number): 'active' | 'expired' | 'revoked' {
  if (revokedAtMs !== null) return 'revoked'
  return expiresAtMs !== null && expiresAtMs <= nowMs ? 'expired' : 'active'
}

function describeKey({ kind, label, id }: Answer): string {
  return `the ${cell(kind)} key "${cell(label)}" (${cell(id)})`
}

function createdText(answer: Answer): string {
  return `${cell(answer['key'])}\n\nStore ${describeKey(answer)} now: it is not shown again.`
}

/** Everything about a key except its hash. */
function keyView(apiKey: ApiKey): Answer {
  const time = (ms: number | null) => (ms === null ? null : isoTime(ms))
  return {
    id: apiKey.id,
    kind: apiKey.kind,
    orgId: apiKey.orgId,
    label: apiKey.label,
    prefix: apiKey.prefix,
    createdAt: isoTime(apiKey.createdAtMs),
    expiresAt: time(apiKey.expiresAtMs),
    revokedAt: time(apiKey.revokedAtMs),
    lastUsedAt: time(apiKey.lastUsedAtMs),
    lastUsedAddress: apiKey.lastUsedAddress,
    exposedAt: time(apiKey.exposedAtMs),
    siteIds: apiKey.siteIds,
    scopes: apiKey.scopes,
    behindProxy: apiKey.behindProxy,
  }
}
