/** Checks the kind of a key by its prefix, so that a secret in the wrong place is caught at start. */

const kinds = { publishable: 'agtx_pk_', ingest: 'agtx_ik_', secret: 'agtx_sk_' } as const
export type KeyKind = keyof typeof kinds

/** Throws unless `key` is of this kind. The message never contains the key. */
export function requireKey(option: string, key: unknown, kind: KeyKind): string {
  if (typeof key === 'string' && isKey(key, kind)) return key
  const given = (Object.keys(kinds) as KeyKind[]).find((other) => String(key).startsWith(kinds[other]))
  if (given === undefined || given === kind) {
    throw new TypeError(`${option} must be a key such as ${kinds[kind]}… with 32 characters after the prefix`)
  }
  const advice = kind === 'publishable' ? ', which is secret and must stay on your server' : ''
  throw new TypeError(
    `${option} must be ${withArticle(kind)} key (${kinds[kind]}…), but this is ${withArticle(given)} key${advice}`,
  )
}

const withArticle = (kind: KeyKind): string => (kind === 'ingest' ? `an ${kind}` : `a ${kind}`)

export function isKey(key: string, kind: KeyKind): boolean {
  return key.startsWith(kinds[kind]) && /^[\w-]{32}$/.test(key.slice(kinds[kind].length))
}
