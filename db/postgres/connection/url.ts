/** Splits the URL of a database as libpq does. `URL` knows one host, ends at `#` and reads `+` as a space. */
import { StoreError } from '../../contract/errors.ts'

export interface DatabaseUrl {
  user: string | undefined
  password: string | undefined
  hosts: string[] // each with its port if it has one; IPv6 in brackets
  database: string | undefined
  parameters: Map<string, string>
}

/** The URL is not repeated in errors, because it may contain a password. */
export function parseDatabaseUrl(text: string): DatabaseUrl {
  const scheme = /^postgres(?:ql)?:\/\//.exec(text)?.[0]
  if (scheme === undefined) throw refused('it must begin with postgres://')
  const afterScheme = text.slice(scheme.length)
  const login = /^([^@/]*)@/s.exec(afterScheme)
  const afterLogin = afterScheme.slice(login?.[0].length ?? 0)
  const [, hosts = '', path = '', query = ''] = /^([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(afterLogin) ?? []
  requireEncodedPassword(login === null ? hosts : null, hosts, `${path}?${query}`)
  const [, user = '', password = ''] = /^([^:]*):?(.*)$/s.exec(login?.[1] ?? '') ?? []
  return {
    user: part('the user', user),
    password: part('the password', password),
    hosts: hosts.split(',').filter(Boolean),
    database: part('the name of the database', path),
    parameters: parametersOf(query),
  }
}

export function refused(message: string): StoreError {
  return new StoreError('internal', `the database URL cannot be used: ${message}`)
}

/** Where a password has an `@` or a `/`, libpq connects to its end as a host. `userAsHost`: no `@` came before a `/`. */
function requireEncodedPassword(userAsHost: string | null, hosts: string, rest: string): void {
  if (hosts.includes('@')) throw refused('its password contains "@"; write that as %40')
  const isCut = userAsHost?.includes(':') && !userAsHost.includes('[') && /^[^?&=]*@/.test(rest)
  if (isCut) throw refused('its password contains "/"; write that as %2F')
}

function part(name: string, text: string): string | undefined {
  return text === '' ? undefined : decodePercent(name, text)
}

export function decodePercent(name: string, text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw refused(`${name} contains a "%" that begins no encoded character; write it as %25`)
  }
}

function parametersOf(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  for (const pair of query === '' ? [] : query.split('&')) {
    const [name = '', ...values] = pair.split('=')
    const decodedName = decodePercent('the name of a parameter', name)
    if (values.length === 0) throw refused(`"${decodedName}" has no value`)
    if (values.length > 1) throw refused(`"${decodedName}" contains a second "="; write it as %3D`)
    parameters.set(decodedName, decodePercent(`"${decodedName}"`, values[0] ?? ''))
  }
  return parameters
}
