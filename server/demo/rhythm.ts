/** When visits happen: weights per hour and weekday, slow drift, outages. Depends only on the day. */
import { hash, randomFrom, type Random } from './random.ts'
import type { AgentClass } from './cast.ts'

export const dayMs = 86_400_000

/** Weight of each hour (UTC). Agents sent by people follow working hours; crawlers come slightly more at night. */
const peopleHours = [2, 1, 1, 1, 1, 2, 4, 7, 11, 14, 15, 14, 12, 14, 16, 17, 17, 15, 13, 12, 11, 9, 6, 4]
const crawlerHours = [12, 13, 14, 14, 13, 12, 10, 9, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9, 10, 10, 11, 12]

const weekdayFactor = [0.55, 1.02, 1.08, 1.1, 1.06, 0.95, 0.6] // Sunday first

/** Traffic of a day relative to an average day. */
export function dayFactor(day: number, of: AgentClass): number {
  const weekday = (day + 4) % 7 // 1970-01-01 was a Thursday
  const noise = 0.92 + (hash(`busy ${day} ${of}`) / 2 ** 32) * 0.16
  const drift = 1 + 0.12 * Math.sin(day / 5.3)
  return (of === 'crawler' ? 1 : weekdayFactor[weekday]!) * noise * drift
}

/** A random time of day, in milliseconds. */
export function momentOfDay(random: Random, of: AgentClass): number {
  const hours = of === 'crawler' ? crawlerHours : peopleHours
  const { hour } = random.weighted(hours.map((weight, at) => ({ hour: at, weight })))
  return Math.floor((hour + random.next()) * 3_600_000)
}

/** On some days the tools fail for an hour or two, so that charts show an incident. */
export function outage(day: number): { fromMs: number; untilMs: number } | null {
  const random = randomFrom('outage', day)
  if (!random.chance(0.09)) return null
  const fromMs = random.whole(6, 20) * 3_600_000
  return { fromMs, untilMs: fromMs + random.whole(45, 130) * 60_000 }
}
