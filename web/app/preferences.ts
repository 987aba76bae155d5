/** Preferences of a reader in this browser and organization. */
import { session } from './session.ts'

const keyOf = (name: string): string => `sightglass.${session.peek()?.org.id ?? ''}.${name}`

/** Null when nothing is stored or storage is disabled. */
export function readPreference(name: string): string | null {
  try {
    return localStorage.getItem(keyOf(name))
  } catch {
    return null
  }
}

/** False if storage is disabled. The choice then lasts until the page closes. */
export function writePreference(name: string, value: string): boolean {
  try {
    localStorage.setItem(keyOf(name), value)
    return true
  } catch {
    return false
  }
}

export function removePreference(name: string): void {
  try {
    localStorage.removeItem(keyOf(name))
  } catch {
    // Storage may be disabled.
  }
}
