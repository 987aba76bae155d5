/** One finding of `doctor` about a PostgreSQL server, and the settings that they read. */
import type { Finding } from '../../contract/operations.ts'

export const ok = (id: string, detail: string, hint: string | null = null): Finding => {
  return { id: `database-${id}`, status: 'ok', detail, hint }
}
export const warning = (id: string, detail: string, hint: string): Finding => {
  return { id: `database-${id}`, status: 'warning', detail, hint }
}
export const failure = (id: string, detail: string, hint: string): Finding => {
  return { id: `database-${id}`, status: 'failure', detail, hint }
}

export type Settings = ReadonlyMap<string, string>
