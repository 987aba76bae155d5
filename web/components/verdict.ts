/** The verdict on an agent's claim as a sentence, for the event drawer and the tables of Detect. */

/** An event's agent as it was stored; its fields can be anything. */
interface JudgedAgent {
  vendor?: unknown
  name?: unknown
  verdict?: unknown
  evidence?: unknown
}

/** Known verdicts, best first, with what they mean; other senders may have their own. */
const verdictWords: { readonly [verdict: string]: string } = {
  verified: 'The operator is proved.',
  consistent: 'Nothing contradicts the claim, and nothing proves it.',
  contradicted: 'The claim is false.',
  unverifiable: 'The claim cannot be checked.',
  unknown: 'The event names no known agent.',
}

const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null)

/**
 * Why the verdict was given, in a sentence; null without a verdict. `network` is the sender's, where it is stored. The
 * texts are a stranger's: draw the sentence with `Text`.
 */
export function verdictSentence(agent: JudgedAgent, network: unknown = null): string | null {
  const verdict = textOf(agent.verdict)
  if (verdict === null) return null
  const evidence = typeof agent.evidence === 'object' && agent.evidence !== null ? agent.evidence : {}
  const { method, list, listDate, networks, keyId, reason } = evidence as { [field: string]: unknown }
  const operator = textOf(agent.vendor) ?? 'The operator'
  const from = textOf(network) === null ? 'The address' : `The address, in ${textOf(network)},`
  const listName = [textOf(list), textOf(listDate)].filter((part) => part !== null).join(', ')
  const source = listName === '' ? '' : ` (${listName})`
  if (method === 'signature') {
    const key = textOf(keyId) === null ? '' : ` (key ${textOf(keyId)})`
    return verdict === 'verified'
      ? `The request is signed by ${operator}${key}.`
      : `The request is signed by another operator${key}.`
  }
  const isInside = verdict === 'verified' || verdict === 'consistent'
  if (method === 'dns')
    return isInside
      ? `The host name of the address is one of ${operator}${source}, and it resolves back to the address.`
      : `The host name of the address is not one of ${operator}${source}.${reasonText(reason)}`
  if (method !== 'address') return Object.hasOwn(verdictWords, verdict) ? verdictWords[verdict]! : null
  if (verdict === 'verified') return `${from} is in a network that ${operator} publishes${source}.`
  if (verdict === 'consistent')
    return `${from} is in a network from which ${operator} fetches pages for people${source}, not of its crawlers.`
  const count = typeof networks === 'number' ? `${networks.toLocaleString('en-US')} networks` : 'its networks'
  return `${operator} publishes ${count}${source}. ${from} is not in any of them.${reasonText(reason)}`
}

/**
 * Why an address outside of the lists does not contradict the claim: the judge (sdk/judge) says so in the evidence.
 */
function reasonText(reason: unknown): string {
  if (reason === 'user-triggered')
    return ' A fetch that a person triggers may come from elsewhere, so this contradicts nothing.'
  return reason === 'old-list' ? ' The list was too old to contradict the claim.' : ''
}
