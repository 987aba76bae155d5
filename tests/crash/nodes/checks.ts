/** What must be true of a fleet after faults, once its writers rest. */
import { readFileSync } from 'node:fs'
import type { Attempt } from './receiver.ts'
import type { Fleet } from './fleet.ts'
import type { Load } from './load.ts'

export interface Checked {
  acknowledged: number
  lost: number
  doubled: number
  /** Attempts of one delivery that overlapped, or came soon after its success although no node had ended. */
  twoOwners: number
  /** Attempts after a success whose answer or record a fault destroyed. */
  repeats: number
  gaps: number
  faults: string[]
}

/** A lease that a fault left behind must end first. */
const settledWithinMs = 100_000

/** A second attempt after a success follows a lost lease, so it comes later than this, or a node that started again. */
const soonMs = 5_000

async function eventually<T>(read: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  for (const endMs = performance.now() + settledWithinMs; ; await Bun.sleep(200)) {
    const value = await read()
    if (holds(value) || performance.now() > endMs) return value
  }
}

export async function check(fleet: Fleet, load: Load): Promise<Checked> {
  const faults = load.faults.splice(0)
  for (const node of fleet.nodes) {
    const ready = () => fetch(`${node.appliance.url}/readyz`).catch(() => null)
    const answer = await eventually(ready, (response) => response?.status === 200)
    if (answer?.status !== 200) faults.push(`${node.name}: ${answer?.status} ${await answer?.text()}`)
  }
  const stored = await exported(fleet)
  const followed = await eventually(
    async () => load.followed.length,
    (count) => count >= stored.length,
  )
  const uniqueIds = new Set(stored)
  faults.push(...differences('the live stream', load.followed.slice(0, followed), stored))
  const attempts = await eventually(
    async () => attemptsOf(fleet),
    (list) => deliveredIds(list).length >= stored.length,
  )
  const undelivered = differences('deliveries', deliveredIds(attempts), stored)
  if (undelivered.length > 0) faults.push(...undelivered, await deliveryState(fleet))
  faults.push(...(await countFaults(fleet, stored.length)))
  const verdict = await fleet.cli('verify')
  if (verdict.code !== 0) faults.push(`verify: ${verdict.stdout}${verdict.stderr}`)
  const { twoOwners, repeats } = owners(attempts, fleet.startsMs)
  return {
    acknowledged: load.acknowledged.size,
    lost: [...load.acknowledged].filter((id) => !uniqueIds.has(id)).length,
    doubled: stored.length - uniqueIds.size,
    twoOwners,
    repeats,
    gaps: load.followed.length - stored.length,
    faults,
  }
}

/** The ids of all events, as often as they are stored. */
async function exported({ cli }: Fleet): Promise<string[]> {
  const { code, stdout, stderr } = await cli('export', 'traces')
  if (code !== 0) throw new Error(`export: ${code} ${stderr}`)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .flatMap((line) => (JSON.parse(line) as { id?: string }).id ?? [])
}

function differences(label: string, actualIds: string[], expected: string[]): string[] {
  const some = new Set(actualIds)
  const all = new Set(expected)
  const missing = [...all].filter((id) => !some.has(id))
  const unknown = [...some].filter((id) => !all.has(id))
  const repeated = actualIds.length - some.size
  return missing.length + unknown.length + repeated === 0
    ? []
    : [
        `${label}: ${missing.length} missing (${missing.slice(0, 3).join()}), ${unknown.length} unknown ` +
          `(${unknown.slice(0, 3).join()}), ${repeated} repeated`,
      ]
}

function attemptsOf({ receiver }: Fleet): Attempt[] {
  const lines = readFileSync(receiver.reports, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Attempt)
}

/** The ids of events in deliveries that succeeded, each delivery once. */
function deliveredIds(attempts: Attempt[]): string[] {
  const bodies = new Map(attempts.filter(({ status }) => status === 200).map(({ id, body }) => [id, body]))
  return [...bodies.values()].flatMap((body) => {
    const { type, data } = JSON.parse(body) as { type: string; data: { events: { id: string }[] } }
    return type === 'trace.batch' ? data.events.map(({ id }) => id) : []
  })
}

/** What tells why deliveries stopped: the endpoint, its deliveries, the receiver and the last failures of the nodes. */
async function deliveryState({ sql, receiver, nodes }: Fleet): Promise<string> {
  const now = 'extract(epoch FROM clock_timestamp()) * 1000'
  const read = (text: string) => sql(text).catch((error: unknown) => String(error))
  const endpoint = `SELECT status, paused_reason, position, sequence, missed, failing_since_ms
    FROM sightglass.webhook_endpoint`
  const deliveries = `SELECT status, count(*), count(lease_id), max(attempts), max(interruptions),
    round(min(next_attempt_at_ms) - ${now}), round(max(leased_until_ms) - ${now}), max(last_error)
    FROM sightglass.webhook_delivery GROUP BY status`
  const warnings = nodes.map(({ name, appliance }) => {
    const lines = appliance.stderr().split('\n')
    return `${name}: ${lines
      .filter((line) => line.includes('"webhook_'))
      .slice(-3)
      .join(' ')}`
  })
  const answer = await fetch(receiver.url).catch((error: unknown) => String(error))
  return [
    `endpoint: ${await read(endpoint)}`,
    `deliveries, leased, attempts, interruptions, due in ms, leased for ms: ${await read(deliveries)}`,
    `receiver: ${typeof answer === 'string' ? answer : answer.status} ${receiver.child.stderr()}`,
    ...warnings,
  ].join('\n')
}

function owners(attempts: Attempt[], startsMs: number[]): { twoOwners: number; repeats: number } {
  let twoOwners = 0
  let repeats = 0
  for (const group of Map.groupBy(attempts, ({ id }) => id).values()) {
    const inOrder = group.toSorted((a, b) => a.startMs - b.startMs)
    inOrder.forEach((attempt, index) => {
      const earlierAttempts = inOrder.slice(0, index)
      const success = earlierAttempts.find(({ status }) => status === 200)
      // A node that starts ends the leases that it had before, whose outcomes it may not have recorded. The receiver
      // may still be busy with the attempt of the process that was killed.
      const isRestarted = (past: Attempt) => startsMs.some((ms) => ms > past.startMs && ms < attempt.startMs)
      if (earlierAttempts.some((past) => past.endMs > attempt.startMs && !isRestarted(past))) twoOwners += 1
      else if (success === undefined) return
      else if (attempt.startMs - success.endMs >= soonMs || isRestarted(success)) repeats += 1
      else twoOwners += 1
    })
  }
  return { twoOwners, repeats }
}

async function countFaults({ url, keys, sql }: Fleet, stored: number): Promise<string[]> {
  // The first read of a connection that a fault has ended is 503.
  const headers = { authorization: `Bearer ${keys.secret}` }
  const answer = await eventually(
    () => fetch(`${url}/v1/metrics`, { headers }),
    ({ status }) => status === 200,
  )
  const { total } = (await answer.json()) as { total: number }
  const counts = await sql(`SELECT (SELECT sum(last_seq) FROM sightglass.event_org) AS a,
    (SELECT sum(events) FROM sightglass.event_block) AS b, (SELECT count(*) FROM sightglass.event_id) AS c`)
  const countText = `${total}|${counts}`
  const expected = [stored, stored, stored, stored].join('|')
  return countText === expected
    ? []
    : [`total, numbers, blocks and ids: ${countText}, ${stored} events stored`]
}
