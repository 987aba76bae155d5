/** One row of an organization's audit chain, and the JSON values it may carry: what every noun of the store shares. */

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json }

/** As the caller gives it; the engine adds the chain's hash. */
export interface AuditEntry {
  id: string // aud_…
  orgId: string
  actor: string // user:<id> | key:<id> | cli | system
  action: string // noun.verb
  target: string // id of the thing acted on
  metadata: { [member: string]: Json } // its label and what changed
  occurredAtMs: number
}
