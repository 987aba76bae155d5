/** A listener ends requests at their deadline, waits for those in flight when it stops, and logs how many it ended. */
import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { startLog } from '../log.ts'
import { readBody } from './body.ts'
import { listen, type Listener, type ListenOptions } from './listener.ts'
import { makeShares } from './shares.ts'

const quiet = startLog({
  level: 'error',
  clock: { now: () => 0 },
  sink: { write: () => {}, takeDropped: () => 0, flush: async () => {} },
})

function listenWith(options: Pick<ListenOptions, 'handle'> & Partial<ListenOptions>): Listener {
  const free = makeShares(1_000_000)
  return listen({
    kind: 'main',
    at: { host: '127.0.0.1', port: 0 },
    basePath: '',
    tls: null,
    log: quiet,
    hostRule: { listenHosts: ['127.0.0.1'], publicUrl: null, allowedHosts: [] },
    observe: () => {},
    stopping: () => false,
    isShed: () => false,
    sender: (peer) => ({ address: peer ?? '', secure: false }),
    inFlight: { bodies: free, largeBodies: free, responses: free },
    ...options,
  })
}

/** What a server sends until it closes the connection. */
function talk(port: number, text: string, onSent = (): void => {}): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => void socket.write(text, onSent))
    socket.on('data', (data) => void (answer += data.toString()))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}

for (const [header, start] of [
  ['content-length: 50', 'abc'],
  ['transfer-encoding: chunked', '3\r\nabc\r\n'],
]) {
  test(`a body that stalls is answered with 503 at the deadline, and its reader ends (${header})`, async () => {
    const bodies = makeShares(1_000_000)
    const read = Promise.withResolvers<string>()
    const listener = listenWith({
      async handle(request) {
        const reading = readBody(request, { bytesMax: 100 })
        reading.then(read.resolve, (error: unknown) => read.resolve(String(error)))
        return new Response(await reading.catch(() => 'unread'))
      },
      requestDeadlineMs: 100,
      inFlight: { bodies, largeBodies: bodies, responses: bodies },
    })
    const head = `POST / HTTP/1.1\r\nhost: localhost\r\n${header}\r\n\r\n`
    const answer = await talk(Number(new URL(listener.url).port), head + start)
    expect(answer).toStartWith('HTTP/1.1 503 ')
    expect(answer).toContain('"overloaded"')
    expect(answer.toLowerCase()).toContain('retry-after: ')
    expect(await read.promise).toContain('The connection closed before the whole body arrived.')
    expect(bodies.used()).toBe(0)
    await listener.stop(50)
  })
}

function listenAndLog(handle: ListenOptions['handle']): { listener: Listener; written: string[] } {
  const written: string[] = []
  const log = startLog({
    level: 'warn',
    clock: { now: () => 0 },
    sink: { write: (text) => void written.push(String(text)), takeDropped: () => 0, flush: async () => {} },
  })
  return { listener: listenWith({ log, handle }), written }
}

test('a request that outlasts the deadline is ended, counted in the log, and delays no stop further', async () => {
  const startSignal = Promise.withResolvers<void>()
  const { listener, written } = listenAndLog((request) => {
    if (request.url.endsWith('/quick')) return Promise.resolve(new Response('ok'))
    startSignal.resolve()
    return new Promise(() => {})
  })
  expect(await (await fetch(`${listener.url}/quick`)).text()).toBe('ok')
  const slow = fetch(`${listener.url}/slow`).then(
    () => 'answered',
    () => 'ended',
  )
  await startSignal.promise
  await listener.stop(50)
  expect(await slow).toBe('ended')
  expect(JSON.parse(written.join(''))).toMatchObject({ event: 'requests_ended', requests: 1, afterMs: 50 })
})

test('a connection that sent half of a head delays no stop; a request in flight is answered before', async () => {
  const startSignal = Promise.withResolvers<void>()
  const { listener, written } = listenAndLog(async () => {
    startSignal.resolve()
    await Bun.sleep(1_500)
    return new Response('answered')
  })
  const sentSignal = Promise.withResolvers<void>()
  const port = Number(new URL(listener.url).port)
  const half = talk(port, 'GET / HTTP/1.1\r\nhost: localhost\r\n', sentSignal.resolve)
  await sentSignal.promise
  const slow = fetch(`${listener.url}/slow`).then((answer) => answer.text())
  await startSignal.promise
  listener.pause()
  listener.resume()
  await listener.stop(6_000) // at the deadline it would write a line
  expect(await slow).toBe('answered')
  expect(await half).toBe('')
  expect(written).toEqual([])
})
