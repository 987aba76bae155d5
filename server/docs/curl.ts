/** The call of an operation as a line for a shell: what the reference offers to copy. */
import type { Operation } from './operation.ts'

/** Keys stand as variables of the shell: they do not belong into a history. */
const keyVariable = { ingest: 'SIGHTGLASS_INGEST_KEY', secret: 'SIGHTGLASS_SECRET_KEY' } as const

export function curlText(operation: Operation, baseUrl: string): string {
  const { method, key, body } = operation
  const lines = [`curl ${shellWord(baseUrl + exampleAddress(operation))}`]
  if (method !== 'get' && !(method === 'post' && body !== undefined)) lines.push(`-X ${method.toUpperCase()}`)
  if (key !== 'none') lines.push(`-H "authorization: Bearer $${keyVariable[key]}"`)
  if (body !== undefined) {
    lines.push(`-H 'content-type: application/json'`, `-d ${shellWord(JSON.stringify(body.example))}`)
  }
  return lines.join(' \\\n  ')
}

/** The path with its example parameters, and the query of the example. */
export function exampleAddress({ path, params = {}, query = {} }: Operation): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(params[name]?.example ?? name),
  )
  const search = new URLSearchParams()
  for (const [name, { example }] of Object.entries(query))
    if (example !== undefined) search.set(name, example)
  return search.size === 0 ? filled : `${filled}?${search}`
}

/** One word of a POSIX shell: nothing in it is read as anything else. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
