/** The three kinds of key, told apart by their prefix, so that a secret in the wrong place is caught at the start. */

const kinds = { publishable: 'agtx_pk_', ingest: 'agtx_ik_', secret: 'agtx_sk_' } as const
export type KeyKind = keyof typeof kinds

/** Throws unless `key` is of this kind. The message names the kind that was given, never the key. */
export function requireKey(option: string, key: unknown, kind: KeyKind): string {
  if (typeof key === 'string' && isKey(key, kind)) return key
  const given = (Object.keys(kinds) as KeyKind[]).find((other) => String(key).startsWith(kinds[other]))
  if (given === undefined || given === kind) {
    throw new TypeError(`${option} must be a key like ${kinds[kind]}… with 32 characters after the prefix`)
  }
  const advice = kind === 'publishable' ? ': that one is secret and must stay on your server' : ''
  throw new TypeError(
    `${option} must be a ${kind} key (${kinds[kind]}…), but this is a ${given} key${advice}`,
  )
}

export function isKey(key: string, kind: KeyKind): boolean {
  return key.startsWith(kinds[kind]) && /^[\w-]{32}$/.test(key.slice(kinds[kind].length))
}
