/** Preferences of a reader in this browser and organization. */
import { session } from './session.ts'

const keyOf = (name: string): string => `sightglass.${session.peek()?.org.id ?? ''}.${name}`

/** Null when nothing is kept or storage is forbidden. */
export function readPreference(name: string): string | null {
  try {
    return localStorage.getItem(keyOf(name))
  } catch {
    return null
  }
}

/** False when the browser keeps nothing: the choice then holds until the page is left. */
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
    // Where storage is forbidden nothing is kept.
  }
}
