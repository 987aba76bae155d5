/** The evidence pack in force, which the bundled one is until an operator stores another, and its replacement. */
import { applianceOrgId } from '../../db/contract/audit.ts'
import type { Store, StoredPack } from '../../db/contract/store.ts'
import type { EvidencePack } from '../../sdk/judge/evidence-pack.ts'
import { openEvidence, type Evidence } from '../../sdk/judge/judge.ts'
import { releaseKeys } from '../../sdk/judge/pack-signature.ts'
import { auditEntry } from '../audit/entry.ts'
import { isoTime, type Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { cutChars } from '../text/text.ts'
import { digestOf, readPackFile, type PackFile, type PackSignature } from './pack-file.ts'

export interface EvidenceInForce {
  pack: EvidencePack
  digest: string
  origin: 'bundled' | 'replaced'
  signedBy: string | null
  storedBy: string | null
  storedAt: string | null
  /** Why the stored pack is not in force, if it is damaged. */
  problem: string | null
  /** The file of the pack, with its signature. */
  file(): string
  /** Prepared for judging, when it is first needed. */
  evidence(): Evidence
}

let bundled: Promise<EvidenceInForce> | null = null

/** The pack of this release, which is loaded when it is first needed. */
export function bundledEvidence(): Promise<EvidenceInForce> {
  bundled ??= import('./bundled-pack.json').then((module) => {
    const { signature, ...document } = module.default
    const stored = { signedBy: signature.key, storedBy: null, storedAtMs: null }
    const file = (): string => JSON.stringify(module.default)
    return inForce(document as unknown as EvidencePack, digestOf(document), 'bundled', { ...stored, file })
  })
  return bundled
}

function inForce(
  pack: EvidencePack,
  digest: string,
  origin: EvidenceInForce['origin'],
  provenance: Pick<EvidenceInForce, 'signedBy' | 'storedBy' | 'file'> & { storedAtMs: number | null },
): EvidenceInForce {
  let opened: Evidence | null = null
  return {
    pack,
    digest,
    origin,
    signedBy: provenance.signedBy,
    storedBy: provenance.storedBy,
    problem: null,
    file: provenance.file,
    storedAt: provenance.storedAtMs === null ? null : isoTime(provenance.storedAtMs),
    evidence: () => (opened ??= openEvidence(pack)),
  }
}

/** The stored pack; the bundled one when there is none, or when it is damaged. */
export async function evidenceOf(stored: StoredPack | null): Promise<EvidenceInForce> {
  if (stored === null) return bundledEvidence()
  try {
    const { pack, digest } = readPackFile(stored.pack)
    if (digest !== stored.digest) throw new AppError('internal_error', 'Its digest has changed.')
    return inForce(pack, digest, 'replaced', { ...stored, file: () => stored.pack })
  } catch (error) {
    const problem = error instanceof AppError ? error.message : String(error)
    return { ...(await bundledEvidence()), problem: `The stored evidence pack is damaged: ${problem}` }
  }
}

/** For a server: the pack in force, also after another node replaced it. */
export interface EvidenceReader {
  current(): Promise<EvidenceInForce>
}

/** Each call reads the digest of the stored pack, because any node may have replaced it. */
export function evidenceReader(store: Pick<Store, 'evidence'>): EvidenceReader {
  let cache: { digest: string | null; evidence: Promise<EvidenceInForce> } | null = null
  return {
    async current() {
      const digest = await store.evidence.digest()
      if (cache !== null && cache.digest === digest) return cache.evidence
      // Requests that arrive meanwhile wait for the same reading: a pack may have 8 MiB.
      const reading = digest === null ? evidenceOf(null) : store.evidence.read().then(evidenceOf)
      const current = { digest, evidence: reading }
      cache = current
      reading.catch(() => {
        if (cache === current) cache = null
      })
      return reading
    },
  }
}

/** How a list differs from that of the pack before. */
export interface ListChange {
  list: string
  change: 'added' | 'removed' | 'changed'
  networksAdded: number
  networksRemoved: number
}

export interface PackReplaced {
  changed: boolean
  digest: string
  made: string
  signature: PackSignature
  origin: EvidenceInForce['origin']
  changes: ListChange[]
}

const refusals: { [signature in Exclude<PackSignature, 'valid'>]: string } = {
  missing: 'The evidence pack is not signed.',
  unknown_key: 'The evidence pack is signed with a key that is not a Sightglass release key.',
  wrong: 'The signature of the evidence pack does not match its contents: the file was changed or damaged.',
}

interface ReplaceServices {
  store: Pick<Store, 'evidence'>
  clock: Clock
  keys?: readonly string[]
}

/**
 * Stores a pack for all nodes. Without `trust` it must be signed with the release key and not be an older one. With
 * `text` null it restores the bundled pack.
 */
export async function replacePack(
  { store, clock, keys = releaseKeys }: ReplaceServices,
  actor: string,
  { text, trust }: { text: string | null; trust: boolean },
): Promise<PackReplaced> {
  const now = clock.now()
  const previousEvidence = await evidenceOf(await store.evidence.read())
  const base = await bundledEvidence()
  const file: PackFile = text === null ? { ...base, signature: 'valid' } : readPackFile(text, keys)
  const { pack, digest, signature, signedBy } = file
  if (signature !== 'valid' && !trust)
    throw new AppError('conflict', refusals[signature], { hint: 'use --trust if you know who made it' })
  if (text !== null && Date.parse(pack.made) < Date.parse(previousEvidence.pack.made) && !trust) {
    throw new AppError(
      'conflict',
      `This pack is older (${pack.made}) than the one in force (${previousEvidence.pack.made}).`,
      {
        hint: 'use --trust to store it anyway',
      },
    )
  }
  if (text !== null) requirePast(pack, now)
  const isBundled = digest === base.digest
  const origin = isBundled ? 'bundled' : 'replaced'
  const answer = {
    digest,
    made: pack.made,
    signature,
    origin,
    changes: listChanges(previousEvidence.pack, pack),
  } as const
  if (digest === previousEvidence.digest && previousEvidence.problem === null)
    return { changed: false, ...answer }
  const state = (packVersion: { digest: string; pack: EvidencePack }) => ({
    digest: packVersion.digest,
    made: packVersion.pack.made,
    networks: networksIn(packVersion.pack),
  })
  const metadata = {
    label: `pack of ${pack.made}`,
    before: state(previousEvidence),
    after: state(file),
    signedBy,
  }
  const audit = auditEntry(
    { orgId: applianceOrgId, actor },
    { action: 'evidence.replaced', target: digest, metadata },
    now,
  )
  const stored = { digest, pack: text ?? '', signedBy, storedBy: actor, storedAtMs: now }
  await store.evidence.replace({ pack: isBundled ? null : stored, audit })
  return { changed: true, ...answer }
}

/** How far the maker's clock may be ahead; it also covers all time zones, because lists have only a day. */
const aheadMsMax = 24 * 3_600_000

/**
 * Refuses dates in the future, however the pack is signed: a list that is "seen" next year would contradict claims long
 * after it is out of date, and no later pack would be newer.
 */
function requirePast({ made: madeAt, lists, hosts, directories, tokens }: EvidencePack, now: number): void {
  const dates = [
    { what: 'the pack', date: madeAt },
    ...lists.map(({ list, seen: seenDay }) => ({ what: `the list ${list}`, date: seenDay })),
    ...lists.map(({ list, published }) => ({ what: `the list ${list}`, date: published })),
    ...hosts.map(({ list, seen: seenDay }) => ({ what: `the list ${list}`, date: seenDay })),
    ...directories.map(({ operator, seen: seenDay }) => ({ what: `the keys of ${operator}`, date: seenDay })),
    ...tokens.map(({ operator, seen: seenDay }) => ({
      what: `the product tokens of ${operator}`,
      date: seenDay,
    })),
  ]
  const future = dates.find(({ date }) => Date.parse(date) > now + aheadMsMax)
  if (future === undefined) return
  throw new AppError(
    'conflict',
    `The date of ${cutChars(future.what, 200)} is in the future: ${future.date}, and now is ${isoTime(now)}.`,
    { hint: 'correct the date in the file, or the clock of this machine' },
  )
}

export function networksIn({ lists }: EvidencePack): number {
  return lists.reduce((sum, { networks }) => sum + networks.length, 0)
}

function listChanges(oldPack: EvidencePack, newPack: EvidencePack): ListChange[] {
  const factsIn = ({ lists, hosts }: EvidencePack): Map<string, { digest: string; networks: string[] }> =>
    new Map(
      [...lists, ...hosts.map((host) => ({ ...host, networks: host.hostNames }))].map((entry) => [
        entry.list,
        entry,
      ]),
    )
  const old = factsIn(oldPack)
  const fresh = factsIn(newPack)
  return [...new Set([...old.keys(), ...fresh.keys()])].sort().flatMap((list): ListChange[] => {
    const was = old.get(list)
    const is = fresh.get(list)
    if (was?.digest === is?.digest) return []
    const left = new Set(was?.networks)
    const right = new Set(is?.networks)
    return [
      {
        list,
        change: was === undefined ? 'added' : is === undefined ? 'removed' : 'changed',
        networksAdded: right.difference(left).size,
        networksRemoved: left.difference(right).size,
      },
    ]
  })
}
