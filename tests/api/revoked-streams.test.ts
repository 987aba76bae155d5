/** An export or a live stream ends, without its proper end, soon after its key or sign-in lost the right to it. */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { auditEntry } from '../../server/audit/entry.ts'
import { permitCheckMs } from '../../server/http/permit.ts'
import { changeKey, revokeKey } from '../../server/identity/keys/keys.ts'
import { changeRole, removeMember } from '../../server/identity/people/members.ts'
import { event } from '../support/events.ts'
import { person, type Person } from '../support/people.ts'
import { testServer, type TestServer } from '../support/server.ts'
import { tempDir } from '../support/temp-dir.ts'
import type { Role } from '../../db/contract/store.ts'

setDefaultTimeout(120_000)

let server: TestServer
const folder = tempDir('revoked')
const acting = { orgId: '', actor: 'cli', role: 'machine' as const }

beforeAll(async () => {
  // A Unix socket buffers 208 KiB, TCP on the loopback several MiB.
  const listen = { host: 'localhost', port: 0, unix: join(folder.path, 'listen') }
  const rateLimits = { gateway: null, ingest: null, dashboard: null } as never
  server = await testServer({ listen, rateLimits })
  acting.orgId = server.org.id
  const ingest = await server.key('ingest')
  for (let from = 0; from < 340; from += 85) {
    const events = Array.from({ length: 85 }, (_, index) =>
      event(`evt_${from + index}`, {
        tool: from + index < 160 ? 'few' : 'many',
        metadata: { note: randomBytes(16_000).toString('base64') },
      }),
    )
    expect((await server.call('/v1/sdk/events', { key: ingest, body: { events } })).status).toBe(202)
  }
  for (let index = 0; index < 700; index++) {
    const act = { action: 'test.noted', target: 'x', metadata: { note: 'x'.repeat(10_000) } }
    await server.store.audit.append(
      auditEntry({ orgId: server.org.id, actor: 'cli' }, act, server.clock.now()),
    )
  }
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

interface SlowReader {
  /** One read of what the socket has; resolves with its bytes, null when the connection is closed. */
  read(): Promise<number | null>
  text(): string
  end(): void
}

async function openSlowly(head: string[], body: string): Promise<SlowReader> {
  let text = ''
  let isClosed = false
  let arrived: ((bytes: number | null) => void) | null = null
  const settle = (bytes: number | null) => {
    arrived?.(bytes)
    arrived = null
  }
  const socket = await Bun.connect({
    unix: server.url.slice('unix:'.length),
    socket: {
      open: (opened) => void opened.pause(),
      data(paused, bytes) {
        paused.pause()
        text += bytes.toString('latin1')
        settle(bytes.length)
      },
      close() {
        isClosed = true
        settle(null)
      },
      error: () => {},
    },
  })
  socket.write(
    `${[...head, 'host: localhost', `content-length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`,
  )
  return {
    text: () => text,
    end: () => void socket.terminate(),
    read() {
      if (isClosed) return Promise.resolve(null)
      return new Promise((resolve) => {
        arrived = resolve
        socket.resume()
      })
    },
  }
}

/** Reads 208 KiB at a time: the number of reads after the right was lost until the connection closed. */
const readEveryMs = 400
const readsMax = Math.floor(5_000 / readEveryMs)

async function readsAfter(reader: SlowReader, lose: () => Promise<unknown>): Promise<number> {
  for (let reads = 0; reads < 2; reads++) expect(await reader.read()).not.toBeNull()
  expect(reader.text().slice(0, 12)).toBe('HTTP/1.1 200')
  await lose()
  for (let reads = 0; reads < 200; reads++) {
    if ((await reader.read()) === null) return reads
    await Bun.sleep(readEveryMs)
  }
  return Infinity
}

async function expectCut(reader: SlowReader, lose: () => Promise<unknown>): Promise<void> {
  expect(await readsAfter(reader, lose)).toBeLessThanOrEqual(readsMax)
  expect(reader.text().slice(-200).includes('_end')).toBe(false)
  expect(reader.text().endsWith('\r\n0\r\n\r\n')).toBe(false)
}

test('a check and the caches of other nodes fit into 5 s', () => {
  expect(2 * permitCheckMs + 1_000).toBeLessThan(5_000)
})

const requests: { [name: string]: { line: string; header?: string; body?: string } } = {
  'traces as NDJSON': { line: 'GET /v1/traces', header: 'accept: application/x-ndjson' },
  'traces as CSV': { line: 'GET /v1/traces', header: 'accept: text/csv' },
  'traces as Parquet': {
    line: 'GET /v1/traces?tool=few', // encoding all of them takes long
    header: 'accept: application/vnd.apache.parquet',
  },
  'audit as JSON': { line: 'POST /v1/audit/export', body: '{}' },
  'audit as CSV': { line: 'POST /v1/audit/export', body: '{"format":"csv"}' },
}

describe('an export by a key', () => {
  async function keyed(name: string) {
    const { line, header, body = '' } = requests[name]!
    const secret = await server.key('secret', { label: `key ${crypto.randomUUID()}` })
    const [key] = (await server.store.keys.list({ orgId: server.org.id, kind: 'secret' })).slice(-1)
    const head = [`${line} HTTP/1.1`, `authorization: Bearer ${secret}`, ...(header ? [header] : [])]
    return { key: key!, reader: await openSlowly(head, body) }
  }

  test.each(Object.keys(requests))('%s ends when the key is revoked', async (name) => {
    const { key, reader } = await keyed(name)
    await expectCut(reader, () => revokeKey(server.store, { ...acting, keyId: key.id }, server.clock))
    reader.end()
  })

  test('it ends when the key loses the scope', async () => {
    const { key, reader } = await keyed('traces as NDJSON')
    await expectCut(reader, () => changeKey(server, acting, key.id, { scopes: ['metrics:read'] }))
    reader.end()
  })

  test('it ends when the key expires', async () => {
    const expiresAtMs = server.clock.now() + 60_000
    const secret = await server.key('secret', { expiresAtMs })
    const head = [
      'GET /v1/traces HTTP/1.1',
      `authorization: Bearer ${secret}`,
      'accept: application/x-ndjson',
    ]
    const reader = await openSlowly(head, '')
    await expectCut(reader, async () => server.clock.move(61_000))
    reader.end()
  })

  test('with a valid key it is whole', async () => {
    const { reader } = await keyed('traces as NDJSON')
    while (!reader.text().endsWith('0\r\n\r\n')) if ((await reader.read()) === null) break
    expect(reader.text().slice(-200)).toContain('{"_end":{"count":340}}')
    reader.end()
  })
})

describe('a stream by a person', () => {
  const losses: { [name: string]: (member: Person) => Promise<unknown> } = {
    'signs out': (member) => member.post('/api/sign-out'),
    'is removed': (member) => removeMember(server, acting, member.id),
    'becomes a viewer': (member) => changeRole(server, acting, member.id, 'viewer'),
  }
  const streams: { [name: string]: { role: Role; line: string; body?: string; isLive?: boolean } } = {
    'export of events': { role: 'admin', line: 'GET /api/export/events?format=ndjson' },
    'export of the audit log': { role: 'admin', line: 'POST /api/audit/export', body: '{}' },
  }
  const cases = Object.keys(streams).flatMap((stream) =>
    Object.keys(losses).map((loss) => [stream, loss] as const),
  )

  test.each(cases)('%s ends when the person %s', async (stream, loss) => {
    const { role, line, body = '' } = streams[stream]!
    const member = await person(server, server.org, role)
    const reader = await openSlowly([`${line} HTTP/1.1`, `cookie: ${member.cookie}`], body)
    await expectCut(reader, () => losses[loss]!(member))
    reader.end()
  })

  test.each(['signs out', 'is removed'])('a quiet live stream ends when the person %s', async (loss) => {
    const member = await person(server, server.org, 'viewer')
    const reader = await openSlowly(['GET /api/live HTTP/1.1', `cookie: ${member.cookie}`], '')
    expect(await reader.read()).not.toBeNull()
    await losses[loss]!(member)
    let reads = 0
    const closed = (text: string) => text.endsWith('0\r\n\r\n')
    while (!closed(reader.text()) && reads <= readsMax) {
      reads++
      const read = reader.read()
      const isOver = await Promise.race([read.then((bytes) => bytes === null), Bun.sleep(readEveryMs)])
      if (isOver === true) break
    }
    expect(reads).toBeLessThanOrEqual(readsMax)
    reader.end()
  })
})
