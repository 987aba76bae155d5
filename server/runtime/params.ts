/** Reads the parameters of a verb's work, which may have come through the control socket, member by member. */
import type { Json } from '../../db/contract/store.ts'
import { UsageError } from '../errors.ts'

export type Params = { [member: string]: Json }

export function textOf(params: Params, name: string): string {
  const value = params[name]
  if (typeof value === 'string') return value
  throw new UsageError(`${name} is missing`)
}

export function textOrNull(params: Params, name: string): string | null {
  const value = params[name]
  if (value === undefined || value === null) return null
  return textOf(params, name)
}

export function textsOf(params: Params, name: string): string[] {
  const value = params[name] ?? []
  if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value
  throw new UsageError(`${name} must be a list of texts`)
}

export function flagOf(params: Params, name: string): boolean {
  return params[name] === true
}

export function numberOf(params: Params, name: string): number {
  const value = params[name]
  if (typeof value === 'number') return value
  throw new UsageError(`${name} must be a number`)
}
