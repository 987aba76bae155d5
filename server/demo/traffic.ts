/** Generates 30 days of demo traffic and live traffic. The same seed, scale and day always give the same events. */
import { isoTime } from '../clock.ts'
import { demoSiteId, type DemoEvent, type Step } from './event.ts'
import { hash, randomFrom, type Random } from './random.ts'
import { agentOf, rarelyFaked, referral, visitSteps, type News } from './visit.ts'
import { demoTools } from './tools.ts'
import { crawlerAgents, newcomers, type Agent, type AgentClass } from './cast.ts'
import { dayMs, hourMs } from '../../db/contract/units.ts'

export interface TrafficRequest {
  seed: number
  events: number // approximate total
  nowMs: number
}

export const demoDays = 30

/** Share of each class in the events of an average day. */
const shares: readonly { class: AgentClass; share: number }[] = [
  { class: 'crawler', share: 0.27 },
  { class: 'webmcp', share: 0.43 },
  { class: 'dom', share: 0.22 },
  { class: 'screenshot', share: 0.08 },
]

// Compensates for the quieter weekends, and for what the last hours have in addition.
const scale = 1.035

/** The last 30 times 24 hours, one array per day, sorted by time, with no event in the future. */
export function* demoTraffic({ seed, events, nowMs }: TrafficRequest): Generator<DemoEvent[]> {
  const since = isoTime(nowMs - demoDays * dayMs)
  const until = isoTime(nowMs)
  const today = Math.floor(nowMs / dayMs)
  const news = newsOf({ seed, events, nowMs })
  for (let day = today - demoDays; day <= today; day++) {
    const date = isoTime(day * dayMs).slice(0, 10)
    const ofDay = news.filter(({ occurredAt }) => occurredAt.startsWith(date))
    const dayEvents = byTime([...dayOfTraffic(day, seed, events), ...ofDay]).filter(
      ({ occurredAt }) => occurredAt >= since && occurredAt <= until,
    )
    if (dayEvents.length > 0) yield dayEvents
  }
}

const byTime = (events: DemoEvent[]): DemoEvent[] =>
  events.sort((a, b) => (a.occurredAt < b.occurredAt ? -1 : a.occurredAt > b.occurredAt ? 1 : 0))

/** The visits of a day. Ids contain the seed and the scale, because other traffic must not share ids. */
function visitsOf(day: number, seed: number, events: number, kind = '') {
  const mark = hash(`${seed}/${events}`).toString(36)
  const date = isoTime(day * dayMs)
    .slice(0, 10)
    .replaceAll('-', '')
  const out: DemoEvent[] = []
  let sessions = 0
  const add = (steps: Step[], startMs: number): void => {
    const sessionId = `demo_${date}_${mark}_${kind}s${sessions++}`
    let atMs = startMs
    for (const { afterMs, ...eventFields } of steps) {
      // Times rise by at least 1 ms, so that they give the order of a session.
      atMs += Math.max(1, Math.round(afterMs))
      const id = `demo_${date}_${mark}_${kind}${out.length}`
      out.push({ id, siteId: demoSiteId, sessionId, occurredAt: isoTime(atMs), ...eventFields })
    }
  }
  return { out, add }
}

/** The last hours have them, so that Overview shows them the day after too. */
const newsHours = 20
/** Calls of the tool that breaks. Overview compares shares of 20 calls and more, so a small demo has none. */
const brokenCalls = 30
const brokenFromEvents = 5_000

/**
 * What Overview reports: in the last hours an operator comes that nobody knows, an impostor, a rule that refuses, and
 * a tool breaks. Each day has others; a second run on the same day sends the same ids.
 */
function newsOf({ seed, events, nowMs }: TrafficRequest): DemoEvent[] {
  const day = Math.floor(nowMs / dayMs)
  const random = randomFrom('news', seed, events, day)
  const { out, add } = visitsOf(day, seed, events, 'n')
  const lastMs = Math.floor(nowMs / hourMs) * hourMs
  const visit = (agent: Agent, news: News): void => {
    const startMs = lastMs - Math.floor(random.next() * newsHours * hourMs)
    add(visitSteps(agent, random, false, news), startMs)
  }
  const visits = (agent: Agent, share: number, news: News): void => {
    for (const countBefore = out.length; out.length - countBefore < Math.max(6, events * share);)
      visit(agent, news)
  }
  const crawler = (name: string): Agent => crawlerAgents.find(({ bot }) => bot?.name === name)!
  visits(newcomers[day % newcomers.length]!, 0.006, {})
  visits(crawler(rarelyFaked[day % rarelyFaked.length]!), 0.003, { isImpostor: true })
  const refusal = { ruleId: 'crawl:training', reason: 'crawlers for training are refused' }
  visits(crawler('Bytespider'), 0.004, { refusal })
  const calls = () => out.filter(({ type }) => type === 'tool.executed').length
  if (events >= brokenFromEvents)
    while (calls() < brokenCalls) visit(agentOf('webmcp', random), { brokenTool: 'search_code' })
  return out
}

export function dayOfTraffic(day: number, seed: number, events: number): DemoEvent[] {
  const { out, add } = visitsOf(day, seed, events)
  const perDay = (events / demoDays) * scale
  const down = outage(day)
  add(deployment(day, Math.floor(perDay / 50)), day * dayMs + 5 * 3_600_000)
  for (const { class: agentClass, share } of shares) {
    const random = randomFrom(seed, events, day, agentClass)
    const target = perDay * share * dayFactor(day, agentClass)
    const countBefore = out.length
    for (;;) {
      const moment = momentOfDay(random, agentClass)
      const toolsFail = down !== null && moment >= down.fromMs && moment < down.untilMs
      const steps = visitSteps(agentOf(agentClass, random), random, toolsFail)
      // The last visit exceeds the target with a probability that keeps the average exact.
      const missing = target - (out.length - countBefore)
      if (steps.length > missing && !random.chance(missing / steps.length)) break
      add(steps, day * dayMs + moment)
      if (agentClass === 'crawler' && random.chance(0.1)) add([referral(random)], day * dayMs + moment)
    }
  }
  return byTime(out)
}

/** What the site reports about itself on weekdays: its policies, and once a week at most `toolsMax` tools. */
function deployment(day: number, toolsMax: number): Step[] {
  const weekday = (day + 4) % 7
  if (weekday === 0 || weekday === 6) return []
  const random = randomFrom('deployment', day)
  const steps: Step[] = [
    {
      type: 'authz.policies_set',
      outcome: 'success',
      afterMs: random.whole(0, 1_800_000),
      durationMs: random.whole(3, 20),
      metadata: { demo: true, page: '/' },
    },
  ]
  if (weekday !== 2) return steps
  for (const tool of demoTools.slice(0, Math.min(40, toolsMax))) {
    steps.push({
      type: 'tool.registered',
      outcome: 'success',
      afterMs: random.whole(2, 30),
      tool: tool.name,
      metadata: { demo: true, page: tool.page },
    })
  }
  return steps
}

const visitsAtOnce = 8
const mix: readonly { class: AgentClass; weight: number }[] = [
  { class: 'crawler', weight: 4 },
  { class: 'webmcp', weight: 4 },
  { class: 'dom', weight: 3 },
  { class: 'screenshot', weight: 1 },
]

/** Returns a function that generates the next event of several concurrent visits. */
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
    const { afterMs: _, ...eventFields } = visit.steps.shift()!
    if (visit.steps.length === 0) visits.splice(visits.indexOf(visit), 1)
    const id = `demo_live_${mark}_${events++}`
    return { id, siteId: demoSiteId, sessionId: visit.sessionId, occurredAt: isoTime(nowMs), ...eventFields }
  }
}

// When visits happen depends only on the day: weights per hour and weekday, slow drift, outages.

/** Weight of each hour (UTC). Agents sent by people follow working hours; crawlers come slightly more at night. */
const peopleHours = [2, 1, 1, 1, 1, 2, 4, 7, 11, 14, 15, 14, 12, 14, 16, 17, 17, 15, 13, 12, 11, 9, 6, 4]
const crawlerHours = [12, 13, 14, 14, 13, 12, 10, 9, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12]

const weekdayFactor = [0.55, 1.02, 1.08, 1.1, 1.06, 0.95, 0.6] // Sunday first

/** Traffic of a day relative to an average day. */
function dayFactor(day: number, agentClass: AgentClass): number {
  const weekday = (day + 4) % 7 // 1970-01-01 was a Thursday
  const noise = 0.92 + (hash(`busy ${day} ${agentClass}`) / 2 ** 32) * 0.16
  const drift = 1 + 0.12 * Math.sin(day / 5.3)
  return (agentClass === 'crawler' ? 1 : weekdayFactor[weekday]!) * noise * drift
}

/** A random time of day, in milliseconds. */
function momentOfDay(random: Random, agentClass: AgentClass): number {
  const hours = agentClass === 'crawler' ? crawlerHours : peopleHours
  const { hour } = random.weighted(hours.map((weight, index) => ({ hour: index, weight })))
  return Math.floor((hour + random.next()) * 3_600_000)
}

/** On some days the tools fail for an hour or two, so that charts show an incident. */
function outage(day: number): { fromMs: number; untilMs: number } | null {
  const random = randomFrom('outage', day)
  if (!random.chance(0.09)) return null
  const fromMs = random.whole(6, 20) * 3_600_000
  return { fromMs, untilMs: fromMs + random.whole(45, 130) * 60_000 }
}
