/** One check of `doctor`, and all of them. */
import type { Finding } from '../../../db/contract/operations.ts'

export type Check = Finding

export function ok(id: string, detail: string): Check {
  return { id, status: 'ok', detail, hint: null }
}

export function warning(id: string, detail: string, hint: string): Check {
  return { id, status: 'warning', detail, hint }
}

export function failure(id: string, detail: string, hint: string): Check {
  return { id, status: 'failure', detail, hint }
}

export interface Diagnosis {
  ok: boolean // true without failures; warnings do not count
  at: string
  version: string
  checks: Check[]
}
