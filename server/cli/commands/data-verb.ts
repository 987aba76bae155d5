/** What a verb around the data is made of, and the pieces its text is written with. */
import type { Json } from '../../../db/contract/store.ts'
import type { Invocation } from '../config.ts'
import type { Params } from '../../runtime/params.ts'

export type Answer = { [member: string]: Json }

export interface DataVerb {
  /** Lists never write: they take no lock and work on a read-only file system. */
  writes: boolean
  /** Whether it makes a folder that is not there. Like `writes` when left out. */
  makesFolder?: boolean
  params(invocation: Invocation): Params | Promise<Params>
  text(answer: Answer): string
}

export function rows(value: Json | undefined): Answer[] {
  return Array.isArray(value) ? (value as Answer[]) : []
}

export function cell(value: Json | undefined): string {
  return value === null || value === undefined ? '' : String(value)
}

/** `2026-06-23 12:00`, UTC. */
export function minute(value: Json | undefined): string {
  return cell(value).slice(0, 16).replace('T', ' ')
}
