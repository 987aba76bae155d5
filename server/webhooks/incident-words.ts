/** What an incident is about, in one sentence for people, told from the data that it was opened with. */
import type { Incident } from '../../db/webhook-store.ts'

/** The data is what `findings.ts` made of it; each kind of rule has a member that the others have not. */
export function incidentSentence({ data }: Pick<Incident, 'data'>): string {
  if ('vendor' in data) return `A new vendor came: ${data['vendor']}.`
  if ('tool' in data) return `The tool ${data['tool']} fails: ${shareWords(data)}.`
  if ('share' in data) return `Much is blocked: ${shareWords(data)}.`
  if ('minutes' in data) {
    return `No event came for ${count(data['minutes'], 'minute')}; the last was at ${data['lastEventAt']}.`
  }
  if ('keyId' in data) return `The key ${data['prefix']}… (${data['label']}) was seen in a browser.`
  return 'A rule found something.'
}

function shareWords({ share, threshold, events }: Incident['data']): string {
  return `${percent(share)} of ${count(events, 'event')} in an hour, more than ${percent(threshold)}`
}

/** `0.125` → `12.5 %`. */
function percent(share: unknown): string {
  return `${Math.round(Number(share) * 1_000) / 10} %`
}

function count(value: unknown, noun: string): string {
  return `${Number(value)} ${noun}${Number(value) === 1 ? '' : 's'}`
}
