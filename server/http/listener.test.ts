/** A listener waits for the requests in flight until its deadline, and logs how many it ended. */
import { expect, test } from 'bun:test'
import { startLog } from '../log.ts'
import { listen } from './listener.ts'
import { makeShares } from './shares.ts'

test('a request that outlasts the deadline is ended, counted in the log, and delays no stop further', async () => {
  const written: string[] = []
  const log = startLog({
    level: 'warn',
    clock: { now: () => 0 },
    sink: { write: (text) => void written.push(String(text)), takeDropped: () => 0, flush: async () => {} },
  })
  const free = makeShares(1_000_000)
  const begun = Promise.withResolvers<void>()
  const listener = listen({
    handle: (request) => {
      if (request.url.endsWith('/quick')) return Promise.resolve(new Response('ok'))
      begun.resolve()
      return new Promise(() => {})
    },
    ...{ kind: 'main', at: { host: '127.0.0.1', port: 0 }, basePath: '', tls: null, log },
    hostRule: { listenHosts: ['127.0.0.1'], publicUrl: null, allowedHosts: [] },
    ...{ observe: () => {}, stopping: () => false, isShed: () => false },
    sender: (peer) => ({ address: peer ?? '', secure: false }),
    inFlight: { bodies: free, largeBodies: free, responses: free },
  })
  expect(await (await fetch(`${listener.url}/quick`)).text()).toBe('ok')
  const slow = fetch(`${listener.url}/slow`).then(
    () => 'answered',
    () => 'ended',
  )
  await begun.promise
  await listener.stop(50)
  expect(await slow).toBe('ended')
  expect(JSON.parse(written.join(''))).toMatchObject({ event: 'requests_ended', requests: 1, afterMs: 50 })
})
