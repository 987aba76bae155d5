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

/** False when storage is disabled: the choice then lasts until the page is left. */
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
    // Nothing is stored when storage is disabled.
  }
}
