/** Thirty days of demo traffic: the same seed, scale and day give the same events whenever they are made. */
import { isoTime } from '../clock.ts'
import type { AgentClass } from './cast.ts'
import { deployment } from './deployment.ts'
import { demoSiteId, type DemoEvent, type Step } from './event.ts'
import { hash, randomFrom } from './random.ts'
import { dayFactor, dayMs, momentOfDay, outage } from './rhythm.ts'
import { agentOf, visitSteps } from './session.ts'

export interface TrafficRequest {
  seed: number
  events: number // about how many over all days
  nowMs: number
}

export const demoDays = 30

/** How the events of an average day divide among the classes. */
const shares: readonly { class: AgentClass; share: number }[] = [
  { class: 'crawler', share: 0.27 },
  { class: 'webmcp', share: 0.43 },
  { class: 'dom', share: 0.22 },
  { class: 'screenshot', share: 0.08 },
]

// Weekends are quieter than the factor 1 of an average day says; this brings the sum back to what was asked for.
const scale = 1.055

/** The last thirty times 24 hours, a day at a time, each in the order things happened; nothing in the future. */
export function* demoTraffic({ seed, events, nowMs }: TrafficRequest): Generator<DemoEvent[]> {
  const since = isoTime(nowMs - demoDays * dayMs)
  const until = isoTime(nowMs)
  const today = Math.floor(nowMs / dayMs)
  for (let day = today - demoDays; day <= today; day++) {
    const made = dayOfTraffic(day, seed, events).filter(
      ({ occurredAt }) => occurredAt >= since && occurredAt <= until,
    )
    if (made.length > 0) yield made
  }
}

export function dayOfTraffic(day: number, seed: number, events: number): DemoEvent[] {
  // Another scale or seed is other traffic and must not share ids with this one.
  const mark = hash(`${seed}/${events}`).toString(36)
  const date = isoTime(day * dayMs)
    .slice(0, 10)
    .replaceAll('-', '')
  const out: DemoEvent[] = []
  let sessions = 0
  const add = (steps: Step[], startMs: number) => {
    const sessionId = `demo_${date}_${mark}_s${sessions++}`
    let atMs = startMs
    for (const { afterMs, ...rest } of steps) {
      // Whole and rising milliseconds: the order of a session can be read from its times.
      atMs += Math.max(1, Math.round(afterMs))
      const id = `demo_${date}_${mark}_${out.length}`
      out.push({ id, siteId: demoSiteId, sessionId, occurredAt: isoTime(atMs), ...rest })
    }
  }
  const perDay = (events / demoDays) * scale
  const down = outage(day)
  add(deployment(day, Math.floor(perDay / 50)), day * dayMs + 5 * 3_600_000)
  for (const { class: of, share } of shares) {
    const random = randomFrom(seed, events, day, of)
    const wanted = perDay * share * dayFactor(day, of)
    const before = out.length
    for (;;) {
      const moment = momentOfDay(random, of)
      const toolsFail = down !== null && moment >= down.fromMs && moment < down.untilMs
      const steps = visitSteps(agentOf(of, random), random, toolsFail)
      // The visit that would go beyond comes with the chance that makes the sum right on average.
      const room = wanted - (out.length - before)
      if (steps.length > room && !random.chance(room / steps.length)) break
      add(steps, day * dayMs + moment)
    }
  }
  return out.sort((a, b) => (a.occurredAt < b.occurredAt ? -1 : a.occurredAt > b.occurredAt ? 1 : 0))
}
