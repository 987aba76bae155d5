/**
 * Verifies the audit trail of a data folder against its hashes, heads, signed checkpoints and trims, and an exported
 * proof as PROOF.md specifies: from the file alone, of any size. Changes nothing.
 */
import { openDatabaseAdmin } from '../../db/open.ts'
import { readCheckpoints, type UnsoundCheckpoint } from './checkpoints.ts'
import { lostCheckpoints, missingFiles, openLosses } from './evidence.ts'
import { checkpointsFileName, isSoundHead, isSoundTrim, trustedKeys } from './signing.ts'
import type { KeyRing } from '../system/key-ring.ts'
import { createReadStream } from 'node:fs'
import { auditHash, genesisHash, positionText } from '../../db/contract/audit.ts'
import type { EvidenceLoss } from '../../db/contract/audit.ts'
import type { AuditFault, AuditRow, AuditTrim, AuditVerdict, SignedHead } from '../../db/contract/store.ts'

export interface TrailVerdict {
  ok: boolean
  chains: AuditVerdict['chains']
  faults: AuditFault[]
  checkpoints: {
    sound: number
    newest: string | null
    unsound: UnsoundCheckpoint[]
    torn: { line: number; bytes: number } | null // an incomplete last line after a crash; not a fault
  }
  missing: string[] // required files
  renewed: EvidenceLoss[] // evidence that was missing once
}

/** Reads the checkpoints first: a running server may add to the chains and to them, but never to them alone. */
export async function verifyTrail(
  dataDir: string,
  ring: KeyRing | null = null,
  location = dataDir,
): Promise<TrailVerdict> {
  const admin = openDatabaseAdmin(location)
  const isFolder = location === dataDir
  const { anchors, newest, unsound, torn } = readCheckpoints(dataDir, ring, await admin.checkpoints())
  const { chains, faults: chainFaults, evidence } = await admin.verifyAudit(anchors)
  const ownKeys = trustedKeys(dataDir, ring)
  const forged = chains.flatMap(({ trim }) => (trim === null ? [] : trimFault(trim, ownKeys)))
  // Reports the first fault of each chain; a trim comes before all entries.
  const otherFaults = chainFaults.filter(({ orgId }) => !forged.some((fault) => fault.orgId === orgId))
  const faults = [...forged, ...otherFaults].sort((a, b) => (a.orgId < b.orgId ? -1 : 1))
  const heads = Object.fromEntries(chains.map(({ orgId, count, hash }) => [orgId, { count, hash }]))
  const missing = chains.length === 0 ? [] : await missingFiles(dataDir, location, evidence, heads)
  const lost = lostCheckpoints(dataDir, evidence)
  if (lost !== null && !missing.includes(checkpointsFileName)) unsound.unshift(shortened(lost, isFolder))
  const isAccepted = openLosses(evidence).length === 0
  const ok = faults.length === 0 && unsound.length === 0 && missing.length === 0 && isAccepted
  const checkpoints = { sound: anchors.length, newest, unsound, torn }
  return { ok, chains, faults, checkpoints, missing, renewed: evidence.losses }
}

function shortened(lost: { written: number; present: number }, isFolder: boolean): UnsoundCheckpoint {
  const place = isFolder ? `the file ${checkpointsFileName}` : 'the table audit_checkpoint'
  const message = `has ${lost.present} checkpoints, but ${lost.written} were written: the newest are missing`
  return { line: lost.present + 1, place, message }
}

function trimFault(trim: AuditTrim, ownKeys: string[]): AuditFault[] {
  if (ownKeys.includes(trim.key) && isSoundTrim(trim)) return []
  const { orgId, count: position } = trim
  const message = `the entries up to here were trimmed, but this appliance's key did not sign the trim`
  return [{ orgId, position, entryId: null, kind: 'forged', message }]
}

export interface ProofVerdict {
  ok: boolean
  orgId: string | null
  entries: number // verified
  trimmed: number // entries that retention deleted before the first one
  signedAt: string | null
  key: string | null // of the head's signature
  fault: { line: number; entryId: string | null; message: string } | null // the first fault
}

const proofFormat = 'sightglass-audit-proof-1'
const lineBytesMax = 8 * 1024 * 1024
const headFields = ['orgId', 'count', 'hash', 'at', 'key', 'signature']
const entryFields = [
  'id',
  'orgId',
  'actor',
  'action',
  'target',
  'metadata',
  'occurredAt',
  'position',
  'prevHash',
  'hash',
]

class InvalidProof extends Error {
  readonly entryId: string | null
  constructor(message: string, entryId: string | null = null) {
    super(message)
    this.entryId = entryId
  }
}

interface First {
  head: SignedHead
  trim: AuditTrim | null
}

/** Rejects only when the file cannot be read. */
export async function verifyProof(path: string, trustedKey: string | null): Promise<ProofVerdict> {
  let line = 0
  let first: First | null = null
  let entries = 0
  let prevHash = genesisHash
  const verdict = (fault: ProofVerdict['fault']): ProofVerdict => ({
    ok: fault === null,
    orgId: first?.head.orgId ?? null,
    entries,
    trimmed: first?.trim?.count ?? 0,
    signedAt: first?.head.at ?? null,
    key: first?.head.key ?? null,
    fault,
  })
  try {
    for await (const text of linesOf(path)) {
      line++
      if (first === null) {
        first = firstLine(text, trustedKey)
        prevHash = first.trim?.hash ?? genesisHash
      } else {
        prevHash = entryLine(text, first, entries + 1, prevHash)
        entries++
      }
    }
    if (first === null) throw new InvalidProof('the file is empty')
    const { head, trim } = first
    if ((trim?.count ?? 0) + entries !== head.count || prevHash !== head.hash)
      throw new InvalidProof(`the head was signed for ${head.count} entries, and the last ones are missing`)
    return verdict(null)
  } catch (error) {
    if (!(error instanceof InvalidProof)) throw error
    return verdict({ line: Math.max(line, 1), entryId: error.entryId, message: error.message })
  }
}

function firstLine(text: string, trustedKey: string | null): First {
  const { format, head, trim, ...unknownFields } = objectOf(text)
  if (format !== proofFormat) {
    throw new InvalidProof(
      'this is not an audit proof; create one with "sightglass export audit --proof" (CSV and JSON exports are not proofs)',
    )
  }
  requireFields(unknownFields, [], 'the first line')
  const signed = headOf(head, 'head') as SignedHead
  if (!isSoundHead(signed)) throw new InvalidProof('the signature of the head is invalid')
  if (trustedKey !== null && signed.key !== trustedKey)
    throw new InvalidProof(`the head is signed by the key ${signed.key}, not by the trusted key`)
  if (trim === undefined) return { head: signed, trim: null }
  const start = headOf(trim, 'trim') as AuditTrim
  if (start.orgId !== signed.orgId || start.key !== signed.key || !isSoundTrim(start))
    throw new InvalidProof('the trim is not signed by the key of the head')
  return { head: signed, trim: start }
}

/** Returns the hash of the entry, which the next one must contain. */
function entryLine(text: string, { head, trim }: First, nth: number, prevHash: string): string {
  const fields = objectOf(text)
  const id = typeof fields['id'] === 'string' ? fields['id'] : null
  requireFields(fields, entryFields, 'the entry', id)
  for (const name of entryFields)
    if (typeof fields[name] !== 'string') throw new InvalidProof(`${name} is missing or is not text`, id)
  const row = fields as unknown as AuditRow
  const position = (trim?.count ?? 0) + nth
  if (row.orgId !== head.orgId) throw new InvalidProof('the entry belongs to another organization', id)
  if (row.position !== positionText(position))
    throw new InvalidProof(`expected position ${position}: an entry was added, removed or moved`, id)
  if (auditHash(row) !== row.hash) throw new InvalidProof('the entry was edited', id)
  if (row.prevHash !== prevHash) throw new InvalidProof('the entry does not follow the one before it', id)
  if (position > head.count) throw new InvalidProof(`the head was signed for ${head.count} entries`, id)
  return row.hash
}

function headOf(value: unknown, label: string): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidProof(`the ${label} is missing`)
  const fields = value as { [name: string]: unknown }
  requireFields(fields, headFields, `the ${label}`)
  for (const name of headFields) {
    const isRight = name === 'count' ? Number.isSafeInteger(fields[name]) : typeof fields[name] === 'string'
    if (!isRight) throw new InvalidProof(`${name} of the ${label} is missing or malformed`)
  }
  return fields
}

/** A field that no hash covers could have any value. */
function requireFields(fields: object, knownFields: string[], place: string, id: string | null = null): void {
  const strange = Object.keys(fields).find((name) => !knownFields.includes(name))
  if (strange !== undefined)
    throw new InvalidProof(
      `${place} has the unknown field ${JSON.stringify(strange.slice(0, 60))}, which no hash covers`,
      id,
    )
}

function objectOf(text: string): { [name: string]: unknown } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = null
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as { [name: string]: unknown }
  throw new InvalidProof('this line is not a JSON object')
}

/** Splits at line feeds only, because JSON strings may contain other line separators. */
async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes: Uint8Array): string => {
    try {
      return decoder.decode(bytes)
    } catch {
      throw new InvalidProof('this line is not valid UTF-8')
    }
  }
  let pendingChunks: Buffer[] = []
  let restBytes = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      yield decode(Buffer.concat([...pendingChunks, chunk.subarray(from, end)]))
      pendingChunks = []
      restBytes = 0
      from = end + 1
    }
    if (from < chunk.length) pendingChunks.push(chunk.subarray(from))
    restBytes += chunk.length - from
    if (restBytes > lineBytesMax) throw new InvalidProof(`this line is longer than ${lineBytesMax} bytes`)
  }
  if (restBytes > 0) yield decode(Buffer.concat(pendingChunks))
}
