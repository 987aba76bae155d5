/** Evidence packs: the bundled one is whole and signed; others are stored only when signed and newer, or trusted. */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AuditEntry, StoredPack } from '../../db/contract/store.ts'
import type { EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { checkEvidence } from '../operations/doctor/diagnose.ts'
import { bundledEvidence, evidenceOf, evidenceReader, replacePack, type PackReplaced } from './evidence.ts'
import { packFileText, readPackFile } from './pack-file.ts'
import { evidenceView } from './view.ts'

/** After every pack of these tests was made. */
const storedAt = Date.parse('2026-12-10T12:00:00Z')

const { privateKey } = generateKeyPairSync('ed25519')
const ownKey = createPublicKey(privateKey).export({ format: 'jwk' }).x!
const noon = Date.parse('2026-11-23T12:00:00Z')
const bundledText = readFileSync(join(import.meta.dir, 'bundled-pack.json'), 'utf8')

let base: EvidencePack
let stored: StoredPack | null
let audits: AuditEntry[]
beforeAll(async () => void (base = (await bundledEvidence()).pack))
beforeEach(() => {
  stored = null
  audits = []
})

/** The rows of the store; tests/store runs them on the engines. */
const store = {
  evidence: {
    digest: async () => stored?.digest ?? null,
    read: async () => stored,
    replace: async ({ pack, audit }: { pack: StoredPack | null; audit: AuditEntry }) => {
      stored = pack
      audits.push(audit)
    },
  },
}

/** GPTBot's list with one network less and two more, and without the list of CCBot. */
function newer(createdAt = '2026-12-01T00:00:00.000Z'): EvidencePack {
  const lists = base.lists
    .filter(({ list }) => list !== 'ccbot')
    .map((addressList) =>
      addressList.list !== 'gptbot'
        ? addressList
        : {
            ...addressList,
            seen: '2026-12-01',
            networks: [...addressList.networks.slice(1), '198.51.100.0/24', '2001:db8::/32'],
          },
    )
  return { ...base, made: createdAt, lists }
}

async function replace(text: string | null, trust = false): Promise<PackReplaced | string> {
  const services = { store, clock: { now: () => storedAt }, keys: [ownKey] }
  return await replacePack(services, 'cli', { text, trust }).catch((error: Error) => error.message)
}

test('the bundled pack is signed with the release key, and its lists are those of known operators', async () => {
  const file = readPackFile(bundledText)
  const { pack, digest, origin } = await bundledEvidence()
  expect(file.signature).toBe('valid')
  expect({ pack: file.pack, digest: file.digest, origin: 'bundled' }).toEqual({
    pack,
    digest,
    origin,
  } as never)
  expect(pack.lists).toHaveLength(22)
  expect(pack.lists.reduce((sum, { networks }) => sum + networks.length, 0)).toBeGreaterThan(3_000)
  const vendors = new Set(pack.tokens.map(({ operator }) => operator)) // those of `detectAgent`
  for (const { list, operator } of pack.lists) expect([list, vendors.has(operator)]).toEqual([list, true])
  expect(pack.tokens.find(({ operator }) => operator === 'OpenAI')?.tokens).toContain('GPTBot')
})

test('a signed newer pack is stored, in force at once, audited, and undone', async () => {
  const text = packFileText(newer(), privateKey)
  const reader = evidenceReader(store)
  expect((await reader.current()).origin).toBe('bundled')
  expect(await replace(text)).toMatchObject({
    changed: true,
    signature: 'valid',
    origin: 'replaced',
    changes: [
      { list: 'ccbot', change: 'removed', networksAdded: 0, networksRemoved: 6 },
      { list: 'gptbot', change: 'changed', networksAdded: 2, networksRemoved: 1 },
    ],
  })
  expect(audits).toMatchObject([
    { orgId: 'org_system', actor: 'cli', action: 'evidence.replaced', metadata: { signedBy: ownKey } },
  ])
  const inForce = await reader.current()
  expect(inForce).toMatchObject({ origin: 'replaced', storedBy: 'cli', signedBy: ownKey, problem: null })
  expect(inForce.pack.lists.some(({ list }) => list === 'ccbot')).toBe(false)
  expect(await replace(text)).toMatchObject({ changed: false })
  expect(audits).toHaveLength(1)
  expect(await replace(null)).toMatchObject({ changed: true, origin: 'bundled' })
  expect([stored, audits.length]).toEqual([null, 2])
})

test('without trust a pack must be signed with the release key and newer', async () => {
  const signed = packFileText(newer(), privateKey)
  const otherPackText = packFileText(newer(), generateKeyPairSync('ed25519').privateKey)
  const edited = signed.replace('2001:db8::/32', '2001:db8::/33')
  const digestsFit = packFileText(newer(), null)
  const swapped = JSON.stringify({ ...JSON.parse(digestsFit), signature: JSON.parse(bundledText).signature })
  const asOurs = JSON.stringify({
    ...(JSON.parse(packFileText(newer('2026-12-02T00:00:00.000Z'), null)) as object),
    signature: (JSON.parse(signed) as { signature: unknown }).signature,
  })
  expect(await replace(packFileText(newer(), null))).toBe('The evidence pack is not signed.')
  for (const text of [otherPackText, swapped])
    expect(await replace(text)).toBe(
      'The evidence pack is signed with a key that is not a Sightglass release key.',
    )
  expect(await replace(asOurs)).toContain('does not match its contents')
  expect(await replace(edited)).toBe('This is not a valid evidence pack: the digest of gptbot is wrong.')
  expect(await replace(edited, true)).toContain('the digest of gptbot is wrong')
  const older = packFileText(newer('2025-01-01T00:00:00.000Z'), privateKey)
  expect(await replace(older)).toStartWith('This pack is older (2025-01-01')
  expect([stored, audits]).toEqual([null, []])
  expect(await replace(older, true)).toMatchObject({ changed: true, signature: 'valid' })
  expect(await replace(asOurs, true)).toMatchObject({ changed: true, signature: 'wrong' })
  expect(stored).toMatchObject({ signedBy: null })
})

test('dates in the future are refused, signed and trusted or not, and a clock that is a little ahead is not', async () => {
  const day = (days: number) => new Date(storedAt + days * 24 * 3_600_000).toISOString()
  const seenIn = (days: number) => {
    const pack = newer(day(0))
    const [first, ...otherLists] = pack.lists
    return { ...pack, lists: [{ ...first!, seen: day(days).slice(0, 10) }, ...otherLists] }
  }
  for (const trust of [false, true]) {
    for (const pack of [newer(day(2)), newer(day(400)), seenIn(3), seenIn(400)])
      expect(await replace(packFileText(pack, privateKey), trust)).toMatch(
        /^The date of .* is in the future: /,
      )
  }
  expect([stored, audits]).toEqual([null, []])
  expect(await replace(packFileText(newer(day(0.9)), privateKey))).toMatchObject({ changed: true })
  expect(await replace(packFileText(seenIn(1), privateKey), true)).toMatchObject({ changed: true })
})

test('what is no pack is refused in a sentence', async () => {
  expect(await replace('{')).toBe('This is not a valid evidence pack: the file is not JSON.')
  expect(await replace('[]')).toBe('This is not a valid evidence pack: the file has no JSON object.')
  expect(await replace('{}')).toContain('format must be "sightglass-evidence-1"')
  const deep = `{"a":${'['.repeat(300_000)}${']'.repeat(300_000)}}`
  expect(await replace(deep)).toBe('This is not a valid evidence pack: the file nests too deeply.')
  expect(await replace(`${' '.repeat(8 * 1024 * 1024)}{}`)).toBe('An evidence pack has at most 8 MiB.')
})

test('a damaged stored pack leaves the bundled one in force', async () => {
  await replace(packFileText(newer(), privateKey))
  const good = stored!
  const damages = [
    { ...good, pack: good.pack.slice(0, -20) },
    { ...good, pack: good.pack.replace('198.51.100.0/24', '198.51.101.0/24') },
    { ...good, pack: good.pack.replace('"made": "2026', '"made": "2027') },
    { ...good, digest: 'other' },
    { ...good, pack: '' },
  ]
  for (const damaged of damages) {
    const { origin, problem, evidence } = await evidenceOf(damaged)
    expect([origin, problem]).toEqual([
      'bundled',
      expect.stringContaining('The stored evidence pack is damaged: '),
    ])
    expect(evidence().listOf.length).toBeGreaterThan(3_000)
  }
  stored = damages[0]!
  expect(await replace(null)).toMatchObject({ changed: true, origin: 'bundled' }) // so that it can be repaired
  expect(stored).toBeNull()
})

test('the view has each list, and says which are too old', async () => {
  const inForce = await bundledEvidence()
  const view = evidenceView(inForce, noon, 180)
  expect(view).toMatchObject({ origin: 'bundled', signed: true, ageDays: 95, maxAgeDays: 180 })
  const gptbot = view.lists.find(({ list }) => list === 'gptbot')
  expect(gptbot).toMatchObject({
    operator: 'OpenAI',
    products: ['GPTBot'],
    count: 17,
    published: '2025-10-30',
  })
  const oldOf = (days: number): number =>
    evidenceView(inForce, noon, days).lists.filter(({ old, kind }) => old && kind === 'networks').length
  expect([oldOf(95), oldOf(94)]).toEqual([0, 22])
  expect(evidenceView(inForce, 0, 180).ageDays).toBe(0) // a clock before the lists
})

test('doctor warns of old lists and fails on a damaged pack', async () => {
  const check = async (evidence: StoredPack | null, now = noon) => {
    const { status, detail } = await checkEvidence({ evidence }, { evidenceMaxAgeDays: 180 }, now)
    return [status, detail] as const
  }
  expect(await check(null)).toEqual(['ok', expect.stringContaining('was last seen 95 days ago.')])
  expect(await check(null, noon + 86 * 86_400_000)).toEqual([
    'warning',
    '22 address lists are older than 180 days (the oldest was last seen 181 days ago), so they contradict no claim.',
  ])
  await replace(packFileText(newer(), privateKey))
  expect((await check(stored))[0]).toBe('ok')
  expect(await check({ ...stored!, pack: '{' })).toEqual([
    'failure',
    expect.stringContaining('damaged: This is not a valid evidence pack'),
  ])
})
