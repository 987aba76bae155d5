/** Reads the URL of a database and its password as libpq does. `URL` knows one host, and ends at `#`. */
import { StoreError } from '../../contract/errors.ts'

interface DatabaseUrl {
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

/** Behind an `@` or `/` in a password, libpq reads a host. `userAsHost`: no `@` came before a `/`. */
function requireEncodedPassword(userAsHost: string | null, hosts: string, pathAndQuery: string): void {
  if (hosts.includes('@')) throw refused('its password contains "@"; write that as %40')
  const isCut = userAsHost?.includes(':') && !userAsHost.includes('[') && /^[^?&=]*@/.test(pathAndQuery)
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
  const text = query.replace(/&$/, '') // as in libpq
  for (const pair of text === '' ? [] : text.split('&')) {
    const [name = '', ...values] = pair.split('=')
    const decodedName = decodePercent('the name of a parameter', name)
    if (values.length === 0) throw refused(`"${decodedName}" has no value`)
    if (values.length > 1) throw refused(`"${decodedName}" contains a second "="; write it as %3D`)
    parameters.set(decodedName, decodePercent(`"${decodedName}"`, values[0] ?? ''))
  }
  return parameters
}

const spaces = /[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000]/g
const ignoredCharacters = /[\u00ad\u034f\u1806\u180b-\u180d\u200c\u200d\u2060\ufe00-\ufe0f\ufeff]/g

/** Control characters, private use, surrogates, non-characters, and what changes how text is shown. */
const prohibitedClasses = /[\p{Cc}\p{Co}\p{Cs}\p{Noncharacter_Code_Point}]/u
const prohibitedCharacters =
  /[\u0340\u0341\u06dd\u070f\u180e\u200e\u200f\u2028-\u202e\u2061-\u206f\u2ff0-\u2ffb\ufff9-\ufffd]/

/**
 * The password as SCRAM wants it (RFC 4013), which the driver sends as it is. As in PostgreSQL, one that cannot be
 * prepared is used as it is.
 */
export function saslPrepared(password: string): string {
  if (/^[\x20-\x7e]*$/.test(password)) return password
  const prepared = password.replace(spaces, ' ').replace(ignoredCharacters, '').normalize('NFKC')
  const isProhibited = prohibitedClasses.test(prepared) || prohibitedCharacters.test(prepared)
  return prepared === '' || isProhibited ? password : prepared
}
