/** Demo traffic that happens now: several visits at once, each event as its turn comes. */
import { isoTime } from '../clock.ts'
import type { AgentClass } from './cast.ts'
import { demoSiteId, type DemoEvent, type Step } from './event.ts'
import { randomFrom } from './random.ts'
import { agentOf, visitSteps } from './session.ts'

const visitsAtOnce = 8
const mix: readonly { class: AgentClass; weight: number }[] = [
  { class: 'crawler', weight: 4 },
  { class: 'webmcp', weight: 4 },
  { class: 'dom', weight: 3 },
  { class: 'screenshot', weight: 1 },
]

/** Returns a function that gives the next event, for ever. Events of one visit come in their order. */
export function liveEvents(seed: number, startedMs: number): (nowMs: number) => DemoEvent {
  const mark = startedMs.toString(36)
  const random = randomFrom(seed, startedMs)
  const visits: { sessionId: string; steps: Step[] }[] = []
  let sessions = 0
  let events = 0
  return (nowMs) => {
    while (visits.length < visitsAtOnce) {
      const steps = visitSteps(agentOf(random.weighted(mix).class, random), random, false)
      visits.push({ sessionId: `demo_live_${mark}_s${sessions++}`, steps })
    }
    const visit = random.pick(visits)
    const { afterMs: _, ...rest } = visit.steps.shift()!
    if (visit.steps.length === 0) visits.splice(visits.indexOf(visit), 1)
    const id = `demo_live_${mark}_${events++}`
    return { id, siteId: demoSiteId, sessionId: visit.sessionId, occurredAt: isoTime(nowMs), ...rest }
  }
}
