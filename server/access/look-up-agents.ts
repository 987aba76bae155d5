/** Asks for the host names that may prove agents in a log. */
import type { Work } from '../http/slices.ts'
import type { HostNames } from '../system/host-names.ts'
import type { FileParser } from './formats.ts'
import type { LogRequest } from './log-request.ts'

/** Looks up the names that may prove agents in a text of whole lines, before the lines are judged. */
export async function lookUpAgents(
  names: HostNames,
  text: string,
  parse: FileParser,
  unproved: (request: LogRequest) => string | null,
  work?: Work,
): Promise<void> {
  const addresses = new Set<string>()
  for (let start = 0; start < text.length;) {
    const pause = work?.pause()
    if (pause !== undefined) await pause
    const feed = text.indexOf('\n', start)
    const stop = feed < 0 ? text.length : feed
    const request = stop > start ? parse(text, start, stop) : null
    const address = request === null || request === 'note' ? null : unproved(request)
    if (address !== null) addresses.add(address)
    start = stop + 1
  }
  if (addresses.size > 0) await names.lookUp(addresses)
}
