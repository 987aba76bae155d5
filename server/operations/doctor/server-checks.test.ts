/** The kernel's connection tables: outgoing connections of this process, and incoming ones. */
import { expect, test } from 'bun:test'
import { connect, createServer } from 'node:net'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { noteCall, noteDatabase, outboundCalls } from '../../system/outbound.ts'
import { checkOutbound, outwardConnections } from './server-checks.ts'

test('the connections of a node to its database are explained, others to that machine are not', () => {
  noteDatabase([
    { host: '127.0.0.1', port: 5432 },
    { host: 'db.example', port: 6543 },
  ])
  const checked = (address: string, port: number) =>
    checkOutbound({ calls: outboundCalls(), open: [{ address, port }] }).status
  expect(checked('127.0.0.1', 5432)).toBe('ok')
  expect(checked('192.0.2.7', 6543)).toBe('ok') // the address of a name
  expect(checked('127.0.0.1', 5433)).toBe('warning')
  expect(checked('192.0.2.7', 5432)).toBe('warning')
  for (let index = 0; index < 1_100; index++)
    noteCall({ what: 'webhook', host: `h${index}.example`, address: null, port: 443 })
  expect(checked('127.0.0.1', 5432)).toBe('ok')
})

test('a connection is listed only on the side that opened it', async () => {
  const accepted = Promise.withResolvers<void>()
  const server = createServer(() => accepted.resolve())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  await accepted.promise
  const toUs = outwardConnections()?.filter((connection) => connection.port === port)
  expect(toUs).toEqual([{ address: '127.0.0.1', port }])
  socket.destroy()
  server.close()
})

test('parses addresses of both families; ignores foreign and closed sockets', () => {
  using dir = tempDir('proc')
  mkdirSync(dir.join('fd'))
  mkdirSync(dir.join('net'))
  for (const inode of [10, 11, 12, 13]) symlinkSync(`socket:[${inode}]`, dir.join(`fd/${inode}`))
  const head =
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
  const row = (local: string, remote: string, state: string, inode: number) =>
    `   0: ${local} ${remote} ${state} 00000000:00000000 00:00000000 00000000     0        0 ${inode} 1 0 20 4\n`
  const tcp = [
    row('00000000:1CE8', '00000000:0000', '0A', 10), // our listener, 7400
    row('0100007F:1CE8', '0100007F:9C40', '01', 11), // somebody came to it
    row('0100007F:9C41', '057100CB:01BB', '01', 12), // 203.0.113.5:443
    row('0100007F:9C42', '067100CB:01BB', '06', 13), // TIME_WAIT
    row('0100007F:9C43', '077100CB:01BB', '01', 99), // another process
  ]
  writeFileSync(dir.join('net/tcp'), head + tcp.join(''))
  const local = '00000000000000000000000001000000:9C44'
  writeFileSync(dir.join('net/tcp6'), head + row(local, 'B80D0120000000000000000001000000:0050', '02', 13))
  expect(outwardConnections(dir.path)).toEqual([
    { address: '203.0.113.5', port: 443 },
    { address: '2001:db8::1', port: 80 },
  ])
  expect(outwardConnections(dir.join('absent'))).toBeNull()
})

test('connections without a recorded call are a warning', () => {
  const hook = {
    what: 'webhook' as const,
    host: 'hooks.example',
    address: '203.0.113.5',
    port: 443,
    times: 2,
  }
  expect(checkOutbound({ calls: [], open: [] })).toMatchObject({ status: 'ok' })
  expect(checkOutbound({ calls: [], open: null })).toMatchObject({ status: 'ok' })
  const finding = checkOutbound({ calls: [hook], open: [{ address: '203.0.113.5', port: 443 }] })
  expect(finding).toMatchObject({
    status: 'ok',
    detail:
      'Outgoing connections since the server started: webhook hooks.example (203.0.113.5) port 443, 2 times.',
  })
  const strange = checkOutbound({ calls: [hook], open: [{ address: '203.0.113.6', port: 443 }] })
  expect(strange).toMatchObject({
    status: 'warning',
    detail: expect.stringContaining('203.0.113.6 port 443'),
  })
  expect(checkOutbound({ calls: [], open: [{ address: '192.0.2.1', port: 53 }] }).status).toBe('ok')
})
