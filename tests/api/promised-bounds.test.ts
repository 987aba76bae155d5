/**
 * What an appliance promises about its log, its start and its memory, by counted work: beside exports that are read
 * slowly the write-ahead log stays small, a start after a kill reads little of a large folder, and requests leave no
 * memory behind. `SIGHTGLASS_TEST_TABLE=1` prints the numbers.
 */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { event } from '../support/events.ts'
import { isFull } from '../support/runs.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'

setDefaultTimeout(180_000)

const mebi = 1024 * 1024
/** The writer copies the log into the database whenever it has so many bytes. */
const copiedFromBytes = 16 * mebi
const batchEvents = 500

let dir: TempDir
let dataDir: string
let appliance: Appliance
let keys: { ingest: string; secret: string }
let startBytes: number // read by the start of an empty folder

beforeAll(async () => {
  dir = tempDir('bounds')
  dataDir = dir.join('data')
  await using empty = await startAppliance({ dataDir })
  const keyOf = async (kind: string): Promise<string> => {
    const keyExit = await empty.cli('key', 'create', '--kind', kind, '--label', kind, '--json')
    return (JSON.parse(keyExit.stdout) as { key: string }).key
  }
  keys = { ingest: await keyOf('ingest'), secret: await keyOf('secret') }
  await empty.stop()
  appliance = await startAgain()
  startBytes = bytesRead(appliance.pid)
})
afterAll(async () => {
  await appliance.stop()
  dir.remove()
})

function startAgain(): Promise<Appliance> {
  return startAppliance({ dataDir, args: ['--rate-limit-ingest', 'off', '--rate-limit-gateway', 'off'] })
}

/** By all system calls that read, also of what the page cache has. */
function bytesRead(pid: number): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))![1])
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

const logBytes = (): number => statSync(join(dataDir, 'sightglass.db-wal')).size

function folderBytes(): number {
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0)
}

let posted = 0

/** Posts new events of about 1.5 KB that compress badly. Returns the bytes of the body. */
async function postBatch(): Promise<number> {
  const first = posted
  posted += batchEvents
  const events = Array.from({ length: batchEvents }, (_, index) => {
    const padding = Buffer.from(crypto.getRandomValues(new Uint8Array(1_000))).toString('base64')
    return event(`bounds_${first + index}`, { metadata: { padding } })
  })
  const body = JSON.stringify({ events })
  const answer = await fetch(`${appliance.url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.ingest}`, 'content-type': 'application/json' },
    body,
  })
  expect(await answer.json()).toMatchObject({ accepted: batchEvents })
  return body.length
}

/** Posts until so many bytes are sent, with something between two posts. Returns the largest size of the log. */
async function largestLog(sentBytes: number, onBatch: () => Promise<unknown>): Promise<number> {
  let largest = 0
  for (let postedBytes = 0; postedBytes < sentBytes;) {
    postedBytes += await postBatch()
    await onBatch()
    largest = Math.max(largest, logBytes())
  }
  return largest
}

function report(label: string, ...bytes: number[]): void {
  if (process.env['SIGHTGLASS_TEST_TABLE'] !== '1') return
  process.stdout.write(
    `${label}: ${bytes.map((byteCount) => (byteCount / mebi).toFixed(1)).join(', ')} MiB\n`,
  )
}

const sentBytes = (isFull ? 300 : 60) * mebi

test('the log stays small while exports are read slowly, and grows only while a transaction is held open', async () => {
  await largestLog(12 * mebi, async () => undefined)
  const exports = await Promise.all(
    Array.from({ length: 2 }, async () => {
      const headers = { authorization: `Bearer ${keys.secret}`, accept: 'application/x-ndjson' }
      const answer = await fetch(`${appliance.url}/v1/traces`, { headers })
      expect(answer.status).toBe(200)
      return answer.body!.getReader()
    }),
  )
  const readALittle = () => Promise.all(exports.map((reader) => reader.read()))
  const largest = await largestLog(sentBytes, readALittle)
  for (const reader of exports) await reader.cancel()
  report('log beside slow exports', largest)
  expect(largest).toBeLessThan(2 * copiedFromBytes)

  // The same measure shows a reader that holds the log.
  const reader = new Database(join(dataDir, 'sightglass.db'), { readonly: true })
  reader.run('BEGIN')
  reader.query('SELECT count(*) FROM sqlite_schema').get()
  const heldBytes = await largestLog(80 * mebi, async () => undefined)
  reader.run('COMMIT')
  reader.close()
  report('log beside an open transaction', heldBytes)
  expect(heldBytes).toBeGreaterThan(2 * copiedFromBytes)
})

test('requests leave no memory behind', async () => {
  const { pid } = appliance
  /** The least of some moments, because the garbage of the last requests is there for a while. */
  const settled = async (): Promise<number> => {
    let leastBytes = Infinity
    for (let moment = 0; moment < 8; moment++) {
      await postBatch()
      leastBytes = Math.min(leastBytes, residentBytes(pid))
    }
    return leastBytes
  }
  await largestLog(sentBytes / 2, async () => undefined)
  const bytesBefore = await settled()
  await largestLog(1.5 * sentBytes, async () => undefined)
  const bytesAfter = await settled()
  report('resident before and after', bytesBefore, bytesAfter)
  expect(bytesAfter).toBeLessThan(512_000_000)
  expect(bytesAfter - bytesBefore).toBeLessThan(0.75 * sentBytes) // half of what was sent
})

test('a start after a kill reads little of a large folder', async () => {
  await appliance.kill()
  const folder = folderBytes()
  const log = logBytes()
  appliance = await startAgain()
  const read = bytesRead(appliance.pid) - startBytes
  report('folder, its log, read by the start beyond an empty one', folder, log, read)
  expect(log).toBeGreaterThan(0)
  expect(read - 2 * log).toBeLessThan((folder - log) / 8)
})
