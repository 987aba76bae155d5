/** Alert rules that compare a measure: states, messages and their explanation, silence, and the back-test. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { startReceiver, type Receiver } from '../support/receiver.ts'
import { webhookServer, type WebhookServer } from '../support/webhook-server.ts'
import type { BacktestView } from '../../server/webhooks/alerts/backtest.ts'

setDefaultTimeout(90_000)

const minuteMs = 60_000
const hourMs = 3_600_000

interface Message {
  type: string
  text: string
  data: { subject: string; [field: string]: unknown }
}

let receiver: Receiver
let hook: WebhookServer
let path: string
let endpointId: string
let tests = 0
beforeAll(async () => {
  receiver = await startReceiver()
  hook = await webhookServer()
})
afterAll(async () => {
  await hook[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})
beforeEach(async () => {
  path = `/ok/measure-${++tests}`
  const body = { url: receiver.url + path, types: ['sdk.error'] }
  const creation = await hook.api<{ endpoint: { id: string } }>('POST', '/v1/webhooks/endpoints', body, 201)
  endpointId = creation.endpoint.id
})

/** Each test has its own site, so that it sees its own events. */
const site = () => `site-${tests}`
const timeAgo = (agoMs: number) => new Date(hook.server.clock.now() - agoMs).toISOString()
const times = (count: number, fields: Record<string, unknown>, agoMs = minuteMs) =>
  Array.from({ length: count }, () => ({ siteId: site(), occurredAt: timeAgo(agoMs), ...fields }))
/** The start of the hour, the given number of hours ago. */
const hourAt = (hours: number) =>
  new Date(Math.floor(hook.server.clock.now() / hourMs) * hourMs - hours * hourMs).toISOString()
const definition = (overrides: Record<string, unknown>) => {
  const { filter = {}, ...otherFields } = overrides
  return { measure: 'count', filter: { siteId: site(), ...(filter as object) }, ...otherFields }
}
const rule = async (overrides: Record<string, unknown>) => {
  const body = { kind: 'measure', name: `Rule ${tests}`, endpointId, ...definition(overrides) }
  return (await hook.api<{ rule: { id: string } }>('POST', '/v1/webhooks/rules', body, 201)).rule.id
}
const messages = () => receiver.received(path).map(({ body }) => JSON.parse(body) as Message)
const alerts = () => messages().map(({ type, data }) => `${type} ${data.subject}`.trim())
const backtest = (overrides: Record<string, unknown>, status = 200) =>
  hook.api<BacktestView>('POST', '/v1/webhooks/rules/backtest', definition(overrides), status)
const audit = async (id: string) => {
  const { store, org } = hook.server
  const { entries } = await store.audit.list({ orgId: org.id, limit: 500, before: null, filter: {} } as never)
  return entries.filter(({ metadata }) => metadata['ruleId'] === id).map(({ action }) => action)
}

/** Runs twice at a time, as two nodes would whose claims overlap, and once more. */
async function run(afterMs = 0): Promise<void> {
  hook.server.clock.move(afterMs)
  await Promise.all([hook.run(), hook.run()])
  await hook.run()
}

describe('conditions', () => {
  test('above a number, for each group, explained by exact numbers', async () => {
    const id = await rule({ condition: { kind: 'above', value: 5 }, groupBy: 'vendor' })
    const bot = { vendor: 'OpenAI', name: 'GPTBot', class: 'crawler' }
    await hook.ingest([
      ...times(2, { agent: bot, metadata: { page: '/' } }, 90 * minuteMs),
      ...times(4, { agent: bot, metadata: { page: '/docs/a' } }),
      ...times(4, { agent: bot, metadata: { page: '/docs/b' } }),
      ...times(4, { agent: bot, metadata: { page: '/' } }),
      ...times(5, { agent: { vendor: 'Quiet' } }),
    ])
    await run()
    expect(alerts()).toEqual(['alert.opened OpenAI'])
    const [opened] = messages()
    expect(opened!.data).toMatchObject({
      rule: 'measure',
      ruleId: id,
      state: 'firing',
      measure: 'count',
      value: 12,
      events: 12,
      groupBy: 'vendor',
      group: 'OpenAI',
      windowMinutes: 60,
      condition: { kind: 'above', value: 5 },
      explanation: '80 % of the rise from the window before comes from GPTBot on /docs/*',
      explained: { before: 2, now: 12 },
      link: expect.stringMatching(new RegExp(`^/logs\\?siteId=${site()}&vendor=OpenAI&since=`)),
    })
    expect(opened!.text).toBe(
      `Rule ${tests} (vendor OpenAI): 12 events in 1 hour, above 5 events. ` +
        '80 % of the rise from the window before comes from GPTBot on /docs/∗.',
    )
    await run(70 * minuteMs)
    expect(alerts()).toEqual(['alert.opened OpenAI', 'alert.resolved OpenAI'])
    expect(await audit(id)).toEqual(['webhook_alert.resolved', 'webhook_alert.opened'])
  })

  test('pending first, with messages if wanted, then firing, kept firing, resolved; across restarts', async () => {
    const id = await rule({
      condition: { kind: 'above', value: 3 },
      windowMinutes: 10,
      forMinutes: 5,
      keepFiringMinutes: 15,
      notifyPending: true,
    })
    await hook.ingest(times(4, {}))
    await run()
    expect(alerts()).toEqual(['alert.pending'])
    expect(messages()[0]!.text).toMatch(/^Pending: Rule \d+: 4 events in 10 minutes, above 3 events\./)
    type Listed = { incidents: { ruleId: string; status: string; id: string }[] }
    const listed = async () =>
      (await hook.api<Listed>('GET', '/v1/webhooks/incidents')).incidents.find(({ ruleId }) => ruleId === id)
    const pending = await listed()
    expect(pending?.status).toBe('pending')
    await hook.api('POST', `/v1/webhooks/incidents/${pending!.id}/acknowledge`, {}, 409)
    await hook.restart()
    await run(4 * minuteMs)
    expect(alerts()).toHaveLength(1)
    await run(minuteMs)
    expect(alerts()).toEqual(['alert.pending', 'alert.opened'])
    await hook.restart()
    await run(10 * minuteMs)
    expect((await listed())?.status).toBe('open')
    await run(14 * minuteMs)
    expect(alerts()).toHaveLength(2)
    await run(2 * minuteMs)
    expect(alerts()).toEqual(['alert.pending', 'alert.opened', 'alert.resolved'])
    expect(new Set(messages().map(({ data }) => data['incidentId'])).size).toBe(1)
    expect(await audit(id)).toEqual([
      'webhook_alert.resolved',
      'webhook_alert.opened',
      'webhook_alert.pending',
    ])
  })

  test('a share, errors, sessions, tokens and the p95 of durations', async () => {
    const tool = { type: 'tool.executed', tool: 'pay', outcome: 'success' }
    await hook.ingest([
      ...times(6, {
        ...tool,
        durationMs: 10,
        sessionId: 's1',
        metadata: { tokens: { input: 10, output: 5 } },
      }),
      ...times(4, { ...tool, outcome: 'error', durationMs: 900, sessionId: 's2', metadata: { tokens: 5 } }),
    ])
    const aboveValue = (value: number) => ({ condition: { kind: 'above', value } })
    const values: [Record<string, unknown>, number][] = [
      [{ measure: 'share', of: { outcome: 'error' }, ...aboveValue(0.3) }, 0.4],
      [{ measure: 'errors', ...aboveValue(3) }, 4],
      [{ measure: 'sessions', ...aboveValue(1) }, 2],
      [{ measure: 'tokens', ...aboveValue(1) }, 110],
    ]
    for (const [body] of values) await rule(body)
    await rule({ measure: 'p95', filter: { tool: 'pay' }, ...aboveValue(500) })
    await run()
    // Messages of one run arrive in any order.
    const messageValues = new Map(
      messages().map(({ data, text }) => [data['measure'], { value: data['value'], text }]),
    )
    for (const [{ measure }, value] of values)
      expect([measure, messageValues.get(measure)?.value]).toEqual([measure, value])
    expect(messageValues.get('p95')?.value).toBeWithin(880, 920)
    expect(messageValues.get('p95')?.text).toMatch(/: p95 of [\d,.]+ ms in 1 hour, above p95 of 500 ms\./)
  })

  test('absence and missing data, of something that was there before', async () => {
    await rule({ condition: { kind: 'absence' }, windowMinutes: 30 })
    await rule({
      measure: 'share',
      of: { outcome: 'error' },
      condition: { kind: 'above', value: 0.5 },
      noData: 'alert',
    })
    await run()
    expect(alerts()).toEqual([]) // never seen
    await hook.ingest(times(3, {}))
    await run()
    expect(alerts()).toEqual([])
    await run(31 * minuteMs)
    expect(messages().map(({ text }) => text)).toEqual([`Rule ${tests}: no events in 30 minutes.`])
    await run(31 * minuteMs)
    expect(messages()[1]!.data).toMatchObject({ measure: 'share', noData: true, value: null })
    await hook.ingest(times(1, {}))
    await run()
    expect(alerts().toSorted()).toEqual(['alert.opened', 'alert.opened', 'alert.resolved', 'alert.resolved'])
  })

  test('a silenced rule opens nothing; when the silence ends, what still holds opens', async () => {
    const id = await rule({ condition: { kind: 'above', value: 1 } })
    const silence = (until: unknown, status = 200) =>
      hook.api<{ rule: { silencedUntil: string | null } }>(
        'POST',
        `/v1/webhooks/rules/${id}/silence`,
        { until },
        status,
      )
    const until = timeAgo(-20 * minuteMs)
    expect((await silence(until)).rule.silencedUntil).toBe(until)
    await hook.ingest(times(5, {}))
    await run()
    expect(alerts()).toEqual([])
    await run(21 * minuteMs)
    expect(alerts()).toEqual(['alert.opened'])
    expect((await silence(null)).rule.silencedUntil).toBeNull()
    for (const wrong of ['soon', timeAgo(minuteMs), timeAgo(-91 * 24 * hourMs), 5, undefined])
      await silence(wrong, 400)
  })

  test('names of strangers stay text: in the message, the alert and the audit log', async () => {
    const vendor = '<!channel> [x](http://evil.example) \u202e"\n`'
    await rule({ condition: { kind: 'above', value: 1 }, groupBy: 'vendor' })
    await hook.ingest(times(3, { agent: { vendor } }))
    await run()
    const [opened] = messages()
    expect(opened!.data['group']).toBe(vendor)
    expect(opened!.text).not.toMatch(/[<>@[\]|`\n\u202e]|:\/\//)
  })
})

describe('against its own past', () => {
  test('an unusual hour fires, by the same baseline that the back-test shows', async () => {
    const { clock } = hook.server
    clock.move(hourMs - (clock.now() % hourMs)) // a whole hour
    const weeks = Array.from({ length: 4 * 168 }, (_, n) => n + 1)
    const usual = weeks.flatMap((hours) => times(20 + ((hours * 7) % 5), {}, hours * hourMs - minuteMs))
    for (let n = 0; n < usual.length; n += 1_000) await hook.ingest(usual.slice(n, n + 1_000))
    const change = { condition: { kind: 'change', direction: 'up' }, windowMinutes: 60, eventsMin: 20 }
    await rule(change)
    await run(30 * minuteMs)
    expect(alerts()).toEqual([])
    await hook.ingest(times(100, {}))
    await run()
    expect(messages()).toMatchObject([{ data: { value: expect.any(Number), expected: expect.any(Number) } }])
    const { value, expected } = messages()[0]!.data as unknown as { value: number; expected: number }
    expect([value >= 100, expected]).toEqual([true, expect.closeTo(22, -1)])
    expect(messages()[0]!.text).toMatch(/1\d\d events in 1 hour, usually 2\d/)
    await run(2 * hourMs)
    expect(alerts()).toEqual(['alert.opened', 'alert.resolved'])

    const tested = await backtest(change)
    expect([tested.complete, tested.hourly, tested.fired, tested.noisy]).toEqual([false, true, 1, false])
    // Four weeks of events: the first two are only compared with.
    const judgedDays = (Date.parse(tested.until) - Date.parse(tested.since)) / (24 * hourMs)
    expect(judgedDays).toBeWithin(13, 15)
    const high = tested.points.find(({ holds }) => holds)!
    expect([high.value! >= 100, high.high! < 100, high.low! > 0]).toEqual([true, true, true])
    const low = await backtest({ ...change, condition: { ...change.condition, direction: 'down' } })
    expect(low.fired).toBe(1) // no events since
  })
})

describe('the back-test', () => {
  test('finds what happened, from hourly counts and from stored events alike', async () => {
    const { clock } = hook.server
    clock.move(hourMs - (clock.now() % hourMs))
    await hook.ingest([
      ...times(30, { outcome: 'blocked' }, 50.5 * hourMs),
      ...times(40, { outcome: 'blocked' }, 49.5 * hourMs),
      ...times(5, { outcome: 'blocked', tool: 'other' }, 20.5 * hourMs),
      ...times(50, { outcome: 'success' }, 10.5 * hourMs),
    ])
    const aboveRule = { filter: { outcome: 'blocked' }, condition: { kind: 'above', value: 20 } }
    const hourly = await backtest(aboveRule)
    const firing = {
      group: '',
      from: hourAt(50),
      to: hourAt(48),
      value: 40,
      expected: null,
      noData: false,
    }
    expect([hourly.hourly, hourly.stepMinutes, hourly.incidents]).toEqual([true, 60, [firing]])
    // Two fields that rollups do not count together.
    const filter = { outcome: 'blocked', tool: 'checkout.pay', class: 'dom' }
    const columns = await backtest({ ...aboveRule, filter })
    expect([columns.hourly, columns.incidents]).toEqual([false, [firing]])
    const short = await backtest({ ...aboveRule, windowMinutes: 30 })
    expect([short.hourly, short.stepMinutes, short.incidents.map(({ value }) => value)]).toEqual([
      false,
      30,
      [40, 30],
    ])
    const noisy = await backtest({
      ...aboveRule,
      condition: { kind: 'below', value: 20 },
      windowMinutes: 60,
      forMinutes: 60,
    })
    expect([noisy.fired >= 1, typeof noisy.noisy]).toEqual([true, 'boolean'])
    const grouped = await backtest({ ...aboveRule, groupBy: 'tool', condition: { kind: 'above', value: 3 } })
    expect(grouped.groups).toEqual([
      { group: 'checkout.pay', fired: 1 },
      { group: 'other', fired: 1 },
    ])
    const waits = await backtest({ ...aboveRule, forMinutes: 180 })
    expect(waits.fired).toBe(0)
  })

  test('at most two of an organization run at a time', async () => {
    const { server, key } = hook
    const body = definition({ condition: { kind: 'above', value: 1 } })
    const call = () => server.call('/v1/webhooks/rules/backtest', { method: 'POST', key, body })
    const statuses = (await Promise.all(Array.from({ length: 6 }, call))).map(({ status }) => status)
    expect(statuses.filter((status) => status === 503).length).toBeGreaterThan(0)
    expect(new Set(statuses)).toEqual(new Set([200, 503]))
    expect((await call()).status).toBe(200)
  })
})

const aboveCondition = { kind: 'above', value: 1 }
test.each<[Record<string, unknown>, string]>([
  [{ measure: 'weight', condition: aboveCondition }, 'measure'],
  [{ condition: { kind: 'sideways' } }, 'condition.kind'],
  [{ condition: { kind: 'above' } }, 'condition.value'],
  [{ condition: { kind: 'above', value: -1 } }, 'condition.value'],
  [{ measure: 'share', of: { outcome: 'error' }, condition: { kind: 'above', value: 2 } }, 'condition.value'],
  [{ measure: 'share', condition: aboveCondition }, 'of'],
  [{ condition: aboveCondition, of: { outcome: 'error' } }, 'of'],
  [{ condition: aboveCondition, filter: { colour: 'red' } }, 'filter.colour'],
  [{ condition: aboveCondition, filter: { vendor: 5 } }, 'filter.vendor'],
  [{ condition: aboveCondition, filter: { type: 'NOT THIS' } }, 'filter.type'],
  [{ condition: aboveCondition, filter: { vendor: 'x'.repeat(201) } }, 'filter.vendor'],
  [{ condition: aboveCondition, filter: { page: Array.from({ length: 51 }, String) } }, 'filter.page'],
  [{ condition: aboveCondition, filter: { page: ['x'.repeat(1_900), 'y'.repeat(1_900)] } }, 'filter'],
  [{ condition: aboveCondition, windowMinutes: 7 }, 'windowMinutes'],
  [{ condition: { kind: 'change' }, windowMinutes: 5 }, 'windowMinutes'],
  [{ measure: 'p95', condition: { kind: 'change' }, windowMinutes: 120 }, 'windowMinutes'],
  [{ measure: 'sessions', condition: aboveCondition, windowMinutes: 10_080 }, 'windowMinutes'],
  [{ condition: { kind: 'change', weeks: 1 } }, 'condition.weeks'],
  [{ condition: aboveCondition, forMinutes: 1_441 }, 'forMinutes'],
  [{ condition: aboveCondition, groupBy: 'sessionId' }, 'groupBy'],
  [{ condition: aboveCondition, groupsMax: 101 }, 'groupsMax'],
  [{ condition: aboveCondition, noData: 'maybe' }, 'noData'],
  [{ condition: aboveCondition, notifyPending: 1 }, 'notifyPending'],
  [{ measure: 'errors', condition: { kind: 'absence' } }, 'condition.kind'],
  [{ condition: aboveCondition, windowMinute: 5 }, 'windowMinute'],
  [{ condition: { ...aboveCondition, weeks: 4 } }, 'condition.weeks'],
  [{ condition: { kind: 'constructor', length: 1 } }, 'condition.kind'],
])('definition %#: refused where it is wrong, as a rule and in a back-test', async (body, issuePath) => {
  const { filter = {}, ...fields } = body
  const whole = { kind: 'measure', name: 'n', endpointId, measure: 'count', filter, ...fields }
  for (const route of ['/v1/webhooks/rules', '/v1/webhooks/rules/backtest']) {
    const response = await hook.server.call(route, { method: 'POST', key: hook.key, body: whole })
    const { issues } = (await response.json()) as { issues: { path: string }[] }
    expect([route, response.status, issues[0]?.path]).toEqual([route, 400, issuePath])
  }
})

test('a rule is changed in part, needs a name, and an organization has at most a hundred', async () => {
  const id = await rule({ condition: aboveCondition, groupBy: 'vendor' })
  const change = (body: object, status = 200) =>
    hook.api<{ rule: object }>('PATCH', `/v1/webhooks/rules/${id}`, body, status)
  const changed = await change({ name: 'Renamed', windowMinutes: 5 })
  expect(changed.rule).toMatchObject({
    name: 'Renamed',
    windowMinutes: 5,
    groupBy: 'vendor',
    condition: aboveCondition,
  })
  await change({}, 400)
  await change({ name: '' }, 400)
  await change({ name: 'x'.repeat(81) }, 400)
  await change({ endpointId: 'ep_none' }, 400)
  await change({ groupBy: 'nothing' }, 400)
  await change({ windowMinutes: 10, windowsMinutes: 5 }, 400)
  const body = { kind: 'measure', name: 'n', endpointId, ...definition({ condition: aboveCondition }) }
  const { rules } = await hook.api<{ rules: { id: string; name: string }[] }>('GET', '/v1/webhooks/rules')
  for (let n = rules.length; n < 100; n++) await hook.api('POST', '/v1/webhooks/rules', body, 201)
  await hook.api('POST', '/v1/webhooks/rules', body, 409)
})
