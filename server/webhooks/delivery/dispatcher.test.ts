/** The dispatcher over a failing store: outcomes wait until they can be recorded, and retries are unaffected. */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { StoreError } from '../../../db/contract/errors.ts'
import { type Claim, type Outcome, type WebhookStore } from '../../../db/contract/webhooks.ts'
import { until } from '../../../tests/support/until.ts'
import { startLog } from '../../log.ts'
import { addressGuard, resolveWith } from '../sinks/addresses.ts'
import { makeDispatcher, type Dispatcher, coalesce } from './dispatcher.ts'
import { secretBox } from '../../system/encryption.ts'

type RecordAndClaim = Parameters<WebhookStore['recordAndClaim']>[0]

let receiver: Bun.Server<undefined>
const hits: string[] = []
beforeAll(() => {
  receiver = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      hits.push(request.headers.get('webhook-id') ?? '')
      const { pathname } = new URL(request.url)
      if (pathname === '/hang') await Bun.sleep(60_000)
      return new Response('', { status: pathname === '/fail' ? 500 : 200 })
    },
  })
})
afterAll(() => receiver.stop(true))

function claimOf(id: string, path = '/'): Claim {
  return {
    leaseId: `lease of ${id}`,
    isAhead: false,
    retryWaitsMs: null,
    lane: id,
    delivery: {
      id,
      orgId: 'org_1',
      endpointId: null,
      url: `http://127.0.0.1:${receiver.port}${path}`,
      body: '{}',
      status: 'pending',
      attempts: 0,
      nextAttemptAtMs: 0,
      lastError: null,
      lastStatus: null,
      scheduledAtMs: Date.now(),
      deliveredAtMs: null,
    },
    pendingSinceMs: Date.now(),
    encryptedSecrets: [],
    probe: false,
    failingSinceMs: null,
  }
}

/** A store that hands out the claims once, unless it is full. */
function scripted(claims: Claim[]) {
  const state = {
    isFull: false,
    commands: [] as RecordAndClaim[],
    recorded: [] as Outcome[],
    waiting: claims,
  }
  const recordAndClaim = async (command: RecordAndClaim): Promise<Claim[]> => {
    state.commands.push(command)
    if (state.isFull) throw new StoreError('storage_full', 'no room')
    state.recorded.push(...command.outcomes)
    return command.claim === null ? [] : state.waiting.splice(0, command.claim.limit)
  }
  return { state, store: { webhooks: { recordAndClaim } as unknown as WebhookStore } }
}

function dispatcherOn(store: { webhooks: WebhookStore }): Dispatcher {
  const clock = { now: () => Date.now() }
  return makeDispatcher({
    store,
    clock,
    log: startLog({ level: 'error', clock }),
    box: secretBox([Buffer.alloc(32)]),
    resolve: resolveWith(() => Promise.reject(new Error('no names here')), addressGuard(['127.0.0.1'])),
    version: 'test',
    sinkDir: null,
    ca: null,
    proxy: null,
    timeoutMs: 5_000,
    leaseMs: 10_000,
    waitsMs: [1_000, 1_000, 1_000],
    random: () => 0,
    onEnded: () => {},
    node: null,
    onRetryScheduled: () => {},
  })
}

test('on a full disk nothing is claimed, and outcomes are recorded once there is space', async () => {
  const { state, store } = scripted([claimOf('wh_full')])
  const dispatcher = dispatcherOn(store)
  state.isFull = true
  await dispatcher.dispatch(Date.now())
  expect(hits).not.toContain('wh_full')
  state.isFull = false
  await dispatcher.dispatch(Date.now())
  state.isFull = true // after the claim, before the outcome
  await dispatcher.idle()
  expect(hits.filter((id) => id === 'wh_full')).toHaveLength(1)
  expect(state.recorded).toEqual([])
  state.isFull = false
  await until(() => state.recorded.length > 0)
  expect(state.recorded).toMatchObject([{ deliveryId: 'wh_full', next: { status: 'delivered' } }])
  expect(hits.filter((id) => id === 'wh_full')).toHaveLength(1)
  await dispatcher.stop(0)
})

test('at most 32 attempts run at a time; the rest follow as slots become free', async () => {
  const { state, store } = scripted(Array.from({ length: 80 }, (_, n) => claimOf(`wh_many_${n}`)))
  const dispatcher = dispatcherOn(store)
  await dispatcher.dispatch(Date.now())
  await dispatcher.idle()
  expect(state.recorded).toHaveLength(80)
  expect(Math.max(...state.commands.map(({ claim }) => claim?.limit ?? 0))).toBe(32)
  await dispatcher.stop(0)
})

test('a stop aborts hanging attempts, uncounted and due at once, and ends claiming', async () => {
  const { state, store } = scripted([claimOf('wh_hang', '/hang'), claimOf('wh_fail', '/fail')])
  const dispatcher = dispatcherOn(store)
  await dispatcher.dispatch(Date.now())
  await dispatcher.stop(300)
  const byId = new Map(state.recorded.map((outcome) => [outcome.deliveryId, outcome]))
  expect(byId.get('wh_hang')).toMatchObject({ attempt: { counted: false }, next: { status: 'pending' } })
  expect(byId.get('wh_fail')).toMatchObject({
    attempt: { counted: true, status: 500 },
    next: { status: 'pending' },
  })
  const commands = state.commands.length
  state.waiting = [claimOf('wh_late')]
  await dispatcher.dispatch(Date.now())
  expect([state.commands.length, hits.includes('wh_late')]).toEqual([commands, false])
})

/** A store whose answer comes after the whole process was suspended for a while. */
function suspending(store: { webhooks: WebhookStore }, forMs: number) {
  const { recordAndClaim } = store.webhooks
  const real = performance.now.bind(performance)
  const spy = spyOn(performance, 'now')
  const suspended = async (command: RecordAndClaim) => {
    const claims = await recordAndClaim(command)
    spy.mockImplementation(() => real() + forMs)
    return claims
  }
  return { store: { webhooks: { recordAndClaim: suspended } as unknown as WebhookStore }, spy }
}

test('a claim whose lease ended before its answer arrived is released, not sent', async () => {
  const { state, store } = scripted([claimOf('wh_over')])
  const { store: slow, spy } = suspending(store, 40_000)
  try {
    const dispatcher = dispatcherOn(slow)
    await dispatcher.dispatch(Date.now())
    await dispatcher.idle()
    await dispatcher.dispatch(Date.now())
    expect(hits).not.toContain('wh_over')
    expect(state.commands.at(-1)?.released).toEqual([{ deliveryId: 'wh_over', leaseId: 'lease of wh_over' }])
    await dispatcher.stop(0)
  } finally {
    spy.mockRestore()
  }
})

test('a secret that cannot be decrypted is a local failure', async () => {
  const claim = { ...claimOf('wh_sealed'), encryptedSecrets: ['v1.00000000.AAAA'] }
  const { state, store } = scripted([claim])
  const dispatcher = dispatcherOn(store)
  await dispatcher.dispatch(Date.now())
  await dispatcher.idle()
  expect(state.recorded).toMatchObject([
    { attempt: { counted: false, error: expect.stringMatching(/^secret_sealed: /) } },
  ])
  await dispatcher.stop(0)
})

test('never two runs at a time; calls during a run share one more', async () => {
  let now = 0
  let maxRunning = 0
  let runs = 0
  const waiting: (() => void)[] = []
  const ask = coalesce(async () => {
    runs++
    maxRunning = Math.max(maxRunning, ++now)
    await new Promise<void>((resolve) => waiting.push(resolve))
    now--
  })
  /** Ends one run after the other until the calls are answered. */
  const settled = async (...calls: Promise<void>[]) => {
    let isDone = false
    void Promise.all(calls).then(() => (isDone = true))
    while (!isDone) {
      waiting.shift()?.()
      await Bun.sleep(0)
    }
  }
  await settled(ask(), ask(), ask())
  expect([runs, maxRunning]).toEqual([2, 1])
  const first = ask()
  await Bun.sleep(0)
  await settled(first, ask(), ask())
  expect([runs, maxRunning]).toEqual([4, 1])
})

test('a call during a run waits for a run that began after it', async () => {
  let value = 0
  const seenCounts: number[] = []
  const ask = coalesce(async () => {
    seenCounts.push(value)
    await Bun.sleep(2)
  })
  const first = ask()
  value = 1
  await ask()
  await first
  expect(seenCounts.at(-1)).toBe(1)
})
