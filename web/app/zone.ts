/**
 * The time zone in which the dashboard shows, picks and saves times: the browser's, unless the reader chose another.
 * Kept in the browser as the theme is, because it belongs to the reader and not to the organization.
 */
import { computed, signal } from '@preact/signals'
import { isZone, momentOf, moved, startOf, wallOf } from '../../server/text/time-zone.ts'

const storageKey = 'sightglass.zone'

/** Names of UTC that browsers give; one of them is enough to choose from. */
const utcNames = new Set(['UTC', 'Etc/UTC', 'Etc/GMT', 'GMT', 'Etc/Unknown'])

/** Chromium still says the old names of these. */
const newNames: { readonly [old: string]: string } = {
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Europe/Kiev': 'Europe/Kyiv',
}

function nameOf(name: string): string {
  const known = Object.hasOwn(newNames, name) ? (newNames[name] ?? name) : name
  return utcNames.has(name) || !isZone(known) ? 'UTC' : known
}

function browserZone(): string {
  return nameOf(new Intl.DateTimeFormat().resolvedOptions().timeZone)
}

export const ownZone = browserZone()

/** Null: the browser's, also when that changes on a journey. */
const chosen = signal<string | null>(stored())

export const zone = computed(() => chosen.value ?? ownZone)

function stored(): string | null {
  try {
    const name = localStorage.getItem(storageKey)
    return name !== null && isZone(name) ? name : null
  } catch {
    return null // storage may be forbidden; the browser's zone is then good enough
  }
}

export function chooseZone(name: string): void {
  chosen.value = name === ownZone ? null : name
  try {
    if (name === ownZone) localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, name)
  } catch {
    // The choice then holds until the page is left.
  }
}

/** Every zone this browser knows, UTC first. */
export function allZones(): string[] {
  return [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone').map(nameOf)])]
}

/** The moment at which a day of the zone begins, `later` days after it; null when `day` is invalid. */
export function dayStart(day: string, later = 0, timeZone = zone.value): number | null {
  const wall = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN
  return Number.isNaN(wall) ? null : momentOf(moved(wall, 'day', later), timeZone)
}

/** The moment of a `datetime-local` field, by the clocks of the zone; null when it is no time. */
export function localMoment(text: string, timeZone = zone.value): number | null {
  const wall = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(`${text}Z`) : Number.NaN
  return Number.isNaN(wall) ? null : momentOf(wall, timeZone)
}

/** The day of a moment, in the format of a date field. */
export function dayOf(ms: number, timeZone = zone.value): string {
  return new Date(startOf(wallOf(ms, timeZone), 'day')).toISOString().slice(0, 10)
}
