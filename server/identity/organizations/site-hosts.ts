/** The hosts of a site, which signed requests of agents may name (contract §17). */
import { wrongField } from '../../http/validate.ts'

const siteHostsMax = 50
const hostCharsMax = 253
const label = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?'
const hostForm = new RegExp(`^(?:${label}(?:\\.${label})*|\\[[0-9a-f:.]{2,45}\\])(?::(\\d{1,5}))?$`)

/** The host as `@authority` has it: in lower case, without the default port. Null for anything else than a host. */
function plainHost(text: string): string | null {
  const host = text.trim().toLowerCase()
  const match = host.length > hostCharsMax ? null : hostForm.exec(host)
  if (match === null || Number(match[1] ?? 1) > 65_535) return null
  return host.replace(/:(?:443|80)$/, '')
}

/** What is wrong with the hosts, as a predicate; null when they are valid. */
export function hostsProblem(texts: readonly string[]): string | null {
  if (texts.length > siteHostsMax) return `must have at most ${siteHostsMax} hosts`
  return texts.every((text) => plainHost(text) !== null)
    ? null
    : 'must be hosts such as shop.example or shop.example:8443, without https:// and without a path'
}

/** The hosts that a form or a command names. Throws 400 when one of them is not a host. */
export function readHosts(texts: readonly string[]): string[] {
  const problem = hostsProblem(texts)
  if (problem !== null) throw wrongField('hosts', `The hosts ${problem}.`)
  return [...new Set(texts.map((text) => plainHost(text)!))]
}

/** The hosts in a text, separated by commas or white space. */
export function hostsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((host) => host !== '')
}
