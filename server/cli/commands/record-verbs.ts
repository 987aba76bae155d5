/** The verbs that carry the record out and in and check it; each prints by itself and returns its exit code. */
import type { Invocation } from '../config.ts'
import type { VerbName } from '../options.ts'

type OwnVerb = (invocation: Invocation) => Promise<number>

// Loaded when asked for: the other verbs start without them.
const exportData: OwnVerb = async (invocation) => (await import('./export.ts')).exportData(invocation)

export const recordVerbs: { readonly [V in VerbName]?: OwnVerb } = {
  verify: async (invocation) => (await import('./verify.ts')).verify(invocation),
  'export audit': async (invocation) => (await import('./export-audit.ts')).exportAudit(invocation),
  'export traces': exportData,
  'export metrics': exportData,
  import: async (invocation) => (await import('./import.ts')).importEvents(invocation),
}
