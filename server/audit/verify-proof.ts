/** Checks an exported audit proof by PROOF.md, from the file alone: no data folder, no network, any size. */
import { createReadStream } from 'node:fs'
import type { AuditRow, AuditTrim } from '../../db/contract/store.ts'
import { auditHash, genesisHash, positionText } from '../../db/rules/audit-hash.ts'
import { isSoundHead, isSoundTrim, type SignedHead } from './signing.ts'

export interface ProofVerdict {
  ok: boolean
  orgId: string | null
  entries: number // that were read and hold
  trimmed: number // entries that retention took before the first one
  signedAt: string | null
  key: string | null // that signed the head
  fault: { line: number; entryId: string | null; message: string } | null // the first one
}

export const proofFormat = 'sightglass-audit-proof-1'
const lineBytesMax = 8 * 1024 * 1024
const headMembers = ['orgId', 'count', 'hash', 'at', 'key', 'signature']
const rowMembers = [
  ...['id', 'orgId', 'actor', 'action', 'target', 'metadata', 'occurredAt'],
  ...['position', 'prevHash', 'hash'],
]

class Unsound extends Error {
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

/** Rejects when the file cannot be read; everything else is a verdict. */
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
    if (first === null) throw new Unsound('the file is empty')
    const { head, trim } = first
    if ((trim?.count ?? 0) + entries !== head.count || prevHash !== head.hash)
      throw new Unsound(`the head was signed over ${head.count} entries; the last of them are missing`)
    return verdict(null)
  } catch (error) {
    if (!(error instanceof Unsound)) throw error
    return verdict({ line: Math.max(line, 1), entryId: error.entryId, message: error.message })
  }
}

function firstLine(text: string, trustedKey: string | null): First {
  const { format, head, trim, ...others } = objectOf(text)
  if (format !== proofFormat) {
    throw new Unsound(
      'this is not an audit proof; "sightglass export audit --proof" writes one (CSV and JSON exports are none)',
    )
  }
  requireMembers(others, [], 'the first line')
  const signed = headOf(head, 'head') as SignedHead
  if (!isSoundHead(signed)) throw new Unsound('the signature of the head is wrong')
  if (trustedKey !== null && signed.key !== trustedKey)
    throw new Unsound(`the head is signed by the key ${signed.key}, not by the one you trust`)
  if (trim === undefined) return { head: signed, trim: null }
  const begun = headOf(trim, 'trim') as AuditTrim
  if (begun.orgId !== signed.orgId || begun.key !== signed.key || !isSoundTrim(begun))
    throw new Unsound('the trim at the beginning was not signed by the key of the head')
  return { head: signed, trim: begun }
}

/** The hash of the entry, which the next one must name. */
function entryLine(text: string, { head, trim }: First, nth: number, prevHash: string): string {
  const members = objectOf(text)
  const id = typeof members['id'] === 'string' ? members['id'] : null
  requireMembers(members, rowMembers, 'the entry', id)
  for (const name of rowMembers)
    if (typeof members[name] !== 'string') throw new Unsound(`${name} is missing or is not text`, id)
  const row = members as unknown as AuditRow
  const position = (trim?.count ?? 0) + nth
  if (row.orgId !== head.orgId) throw new Unsound('the entry is of another organization', id)
  if (row.position !== positionText(position))
    throw new Unsound(`position ${position} is expected here: an entry was added, removed or moved`, id)
  if (auditHash(row) !== row.hash) throw new Unsound('the entry was edited', id)
  if (row.prevHash !== prevHash) throw new Unsound('the entry does not follow from the one before', id)
  if (position > head.count) throw new Unsound(`the head was signed over ${head.count} entries`, id)
  return row.hash
}

function headOf(value: unknown, name: string): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Unsound(`the ${name} is missing`)
  const members = value as { [member: string]: unknown }
  requireMembers(members, headMembers, `the ${name}`)
  for (const member of headMembers) {
    const isRight =
      member === 'count' ? Number.isSafeInteger(members[member]) : typeof members[member] === 'string'
    if (!isRight) throw new Unsound(`${member} of the ${name} is missing or malformed`)
  }
  return members
}

/** A member that no hash covers could say anything. */
function requireMembers(members: object, known: string[], of: string, id: string | null = null): void {
  const strange = Object.keys(members).find((name) => !known.includes(name))
  if (strange !== undefined)
    throw new Unsound(
      `${of} has the member ${JSON.stringify(strange.slice(0, 60))}, which nothing covers`,
      id,
    )
}

function objectOf(text: string): { [member: string]: unknown } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = null
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as { [member: string]: unknown }
  throw new Unsound('this line is not a JSON object')
}

/** By line feeds alone: JSON leaves other line separators in its texts. A line feed at the end begins no line. */
async function* linesOf(path: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const decode = (bytes: Uint8Array): string => {
    try {
      return decoder.decode(bytes)
    } catch {
      throw new Unsound('this line is not valid UTF-8')
    }
  }
  let rest: Buffer[] = []
  let restBytes = 0
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      yield decode(Buffer.concat([...rest, chunk.subarray(from, end)]))
      rest = []
      restBytes = 0
      from = end + 1
    }
    if (from < chunk.length) rest.push(chunk.subarray(from))
    restBytes += chunk.length - from
    if (restBytes > lineBytesMax) throw new Unsound(`this line is longer than ${lineBytesMax} bytes`)
  }
  if (restBytes > 0) yield decode(Buffer.concat(rest))
}
