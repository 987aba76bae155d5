/** The clock of the dashboard and its time zone. No other file reads the time of day. */
import { computed, signal } from '@preact/signals'
import { isZone, momentOf, moved, startOf, wallOf } from '../../server/text/time-zone.ts'

/** Milliseconds since 1970-01-01 UTC, by the browser's clock. */
export function now(): number {
  return Date.now()
}

/** `YYYY-MM-DDTHH:MM:SS.sssZ`, the format of the API. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}

const storageKey = 'sightglass.zone'

/** Browsers have several names for UTC. The menu needs one of them. */
const utcNames = new Set(['UTC', 'Etc/UTC', 'Etc/GMT', 'GMT', 'Etc/Unknown'])

/** Chromium still uses the old names of these zones. */
const newNames: { readonly [old: string]: string } = {
  'Asia/Calcutta': 'Asia/Kolkata',
  'Asia/Katmandu': 'Asia/Kathmandu',
  'Asia/Rangoon': 'Asia/Yangon',
  'Asia/Saigon': 'Asia/Ho_Chi_Minh',
  'Europe/Kiev': 'Europe/Kyiv',
}

function nameOf(name: string): string {
  const currentName = Object.hasOwn(newNames, name) ? (newNames[name] ?? name) : name
  return utcNames.has(name) || !isZone(currentName) ? 'UTC' : currentName
}

function browserZone(): string {
  return nameOf(new Intl.DateTimeFormat().resolvedOptions().timeZone)
}

export const ownZone = browserZone()

/** Null: the browser's zone, even if it changes. */
const chosen = signal<string | null>(stored())

/**
 * The time zone in which the dashboard shows, selects and saves times: the browser's, unless the reader sets another.
 * Stored in the browser like the theme, because it belongs to the reader and not to the organization.
 */
export const zone = computed(() => chosen.value ?? ownZone)

function stored(): string | null {
  try {
    const name = localStorage.getItem(storageKey)
    return name !== null && isZone(name) ? name : null
  } catch {
    return null // Storage may be disabled.
  }
}

export function chooseZone(name: string): void {
  chosen.value = name === ownZone ? null : name
  try {
    if (name === ownZone) localStorage.removeItem(storageKey)
    else localStorage.setItem(storageKey, name)
  } catch {
    // The choice lasts until the page closes.
  }
}

/** All zones that this browser supports, UTC first. */
export function allZones(): string[] {
  return [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone').map(nameOf)])]
}

/** The start of a day in the zone, plus `later` days. Null if `day` is invalid. */
export function dayStart(day: string, later = 0, timeZone = zone.value): number | null {
  const wall = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : Number.NaN
  return Number.isNaN(wall) ? null : momentOf(moved(wall, 'day', later), timeZone)
}

/** The moment of a `datetime-local` field in the zone. Null if it is invalid. */
export function localMoment(text: string, timeZone = zone.value): number | null {
  const wall = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(`${text}Z`) : Number.NaN
  return Number.isNaN(wall) ? null : momentOf(wall, timeZone)
}

/** The day of a moment in the zone, in the format of a date field. */
export function dayOf(ms: number, timeZone = zone.value): string {
  return new Date(startOf(wallOf(ms, timeZone), 'day')).toISOString().slice(0, 10)
}
