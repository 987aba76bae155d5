/** The thread that encodes Parquet files, so that neither requests nor the store wait for it. One file at a time. */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { setPriority } from 'node:os'
import { dirname } from 'node:path'
import { syncFolder, writeWhole } from '../../db/rules/durable-files.ts'
import type { Provenance } from '../../db/contract/store.ts'
import { eventEncoder, type EventEncoder, type EventRow } from './events.ts'

export type ParquetRequest =
  /** Null: its bytes are returned. The file appears at `path` when it is complete. */
  | { verb: 'begin'; orgId: string; createdBy: string; path: string | null }
  /**
   * Joined, because one string crosses threads several times cheaper than many; `times` has two per row, `provenance`
   * is the JSON list of their records.
   */
  | { verb: 'rows'; text: string; lengths: Uint32Array; times: Float64Array; provenance: string }
  | { verb: 'end' }
  /** Replaces a small file. */
  | { verb: 'replace'; path: string; text: string }
  | { verb: 'close' }

interface FileFacts {
  rows: number
  minTimeMs: number | null // null without rows
  maxTimeMs: number | null
  bytes: number
  sha256: string
}

export interface ParquetResult {
  parts: Uint8Array<ArrayBuffer>[]
  facts: FileFacts | null // of `end`
}

export type ParquetAnswer = { result: ParquetResult } | { error: string }

interface Draft {
  encoder: EventEncoder
  file: { handle: number; draft: string; path: string } | null
  facts: FileFacts
  hash: Bun.CryptoHasher
}

declare const self: Worker

let draft: Draft | null = null

self.onmessage = ({ data }: MessageEvent<ParquetRequest>) => {
  let answer: ParquetAnswer
  try {
    answer = { result: handle(data) }
  } catch (error) {
    discard()
    answer = { error: error instanceof Error ? error.message : String(error) }
  }
  self.postMessage(answer)
}
giveWay()

const emptyResult: ParquetResult = { parts: [], facts: null }

function handle(request: ParquetRequest): ParquetResult {
  if (request.verb === 'begin') {
    const { orgId, createdBy, path } = request
    const facts = { rows: 0, minTimeMs: null, maxTimeMs: null, bytes: 0, sha256: '' }
    const hash = new Bun.CryptoHasher('sha256')
    draft = { encoder: eventEncoder(orgId, createdBy), file: openDraft(path), facts, hash }
    return emptyResult
  }
  if (request.verb === 'replace') {
    mkdirSync(dirname(request.path), { recursive: true, mode: 0o700 })
    writeWhole(request.path, request.text)
    return emptyResult
  }
  if (request.verb === 'close') {
    discard()
    setTimeout(() => process.exit(0)) // in a worker this ends the thread only
    return emptyResult
  }
  if (draft === null) throw new Error('no file was begun')
  if (request.verb === 'rows') {
    const parts: Uint8Array[] = []
    for (const row of rowsOf(request)) parts.push(...add(draft, row))
    return { parts: write(draft, parts), facts: null }
  }
  const parts = write(draft, draft.encoder.end())
  const facts = { ...draft.facts, sha256: draft.hash.digest('hex') }
  if (draft.file !== null) place(draft.file)
  draft = null
  return { parts, facts }
}

function* rowsOf({
  text,
  lengths,
  times,
  provenance,
}: ParquetRequest & { verb: 'rows' }): Generator<EventRow> {
  const records = JSON.parse(provenance) as (Provenance | null)[]
  let offset = 0
  for (let row = 0; row < lengths.length; row++) {
    const json = text.slice(offset, (offset += lengths[row]!))
    const record = records[row] ?? undefined
    yield { json, occurredAtMs: times[2 * row]!, receivedAtMs: times[2 * row + 1]!, provenance: record }
  }
}

/** Not through a link that somebody put in its place. */
function openDraft(path: string | null): Draft['file'] {
  if (path === null) return null
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const name = `${path}.tmp`
  rmSync(name, { force: true }) // of a process that was killed; a link is not followed
  return { handle: openSync(name, 'wx', 0o600), draft: name, path }
}

function add({ encoder, facts }: Draft, row: EventRow): Uint8Array[] {
  facts.rows++
  facts.minTimeMs = Math.min(facts.minTimeMs ?? Infinity, row.occurredAtMs)
  facts.maxTimeMs = Math.max(facts.maxTimeMs ?? -Infinity, row.occurredAtMs)
  return encoder.add(row)
}

/** Writes to the file, or returns one part for the receiver: a message per page would cost more than its bytes. */
function write({ file, facts, hash }: Draft, parts: Uint8Array[]): Uint8Array<ArrayBuffer>[] {
  if (parts.length === 0) return []
  const whole = new Uint8Array(Buffer.concat(parts))
  facts.bytes += whole.length
  hash.update(whole)
  if (file === null) return [whole]
  for (let from = 0; from < whole.length;) from += writeSync(file.handle, whole, from)
  return []
}

/** A complete file replaces the previous one, so a reader never sees a partial file. */
function place({ handle: file, draft: name, path }: NonNullable<Draft['file']>): void {
  fsyncSync(file)
  closeSync(file)
  renameSync(name, path)
  syncFolder(dirname(path))
}

function discard(): void {
  const file = draft?.file ?? null
  draft = null
  if (file === null) return
  closeSync(file.handle)
  rmSync(file.draft, { force: true })
}

/** Like the threads of the store that are not urgent (db/sql/threads/port.ts). Without permission nothing changes. */
function giveWay(): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), 3)
  } catch {
    return
  }
}
