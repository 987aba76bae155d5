/** What the appliance takes in one request: the contract's numbers until it says its own. */
import type { Connection } from '../wire/connection.ts'
import { request } from '../wire/request.ts'
import { isObject } from '../wire/verdict.ts'

export interface IngestLimits {
  eventsPerRequestMax: number
  bodyBytesMax: number
  eventBytesMax: number
}

export const defaultLimits: IngestLimits = {
  eventsPerRequestMax: 1_000,
  bodyBytesMax: 8 * 1024 * 1024,
  eventBytesMax: 64 * 1024,
}

/** Asks the appliance. What it does not answer, or answers with anything but a positive number, stays as it was. */
export async function learnLimits(
  connection: Connection,
  known: IngestLimits,
  signal: AbortSignal,
): Promise<IngestLimits> {
  const reply = await request(connection, { method: 'GET', path: '/v1/limits', signal })
  const body = reply.kind === 'answer' && reply.status === 200 && isObject(reply.body) ? reply.body : {}
  const pick = (name: keyof IngestLimits): number => {
    const value = body[name]
    return typeof value === 'number' && value >= 1 ? Math.floor(value) : known[name]
  }
  return {
    eventsPerRequestMax: pick('eventsPerRequestMax'),
    bodyBytesMax: pick('bodyBytesMax'),
    eventBytesMax: pick('eventBytesMax'),
  }
}
