/**
 * What a server saw of a request by an agent: the address of the sender and its signature. It is sent beside the event,
 * and only to an appliance that judges by it and forgets it. It is never written to a spool.
 */
import { observeSignature, type ObservedSignature } from '../judge/observe-signature.ts'
import type { MessageFields } from '../judge/signature-base.ts'

export interface Observed {
  address?: string
  signature?: ObservedSignature
}

const addressCharsMax = 64

/** Null when there is nothing to report. `url` is absolute, with the host that the client requested. */
export function observe(
  address: string | null | undefined,
  signed: { method: string; url: string; headers: MessageFields } | null,
): Observed | null {
  const observed: Observed = {}
  if (typeof address === 'string' && address !== '' && address.length <= addressCharsMax)
    observed.address = address
  const signature = signed === null ? null : observeSignature(signed)
  if (signature !== null) observed.signature = signature
  return observed.address === undefined && signature === null ? null : observed
}
