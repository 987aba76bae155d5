/** Reads the members of a small JSON body by name and kind; a member nobody asked for is refused, not ignored. */
import { AppError, type Issue } from '../errors.ts'
import { limits } from '../limits.ts'
import { readJsonObject } from './body.ts'

interface Kinds {
  text: string
  flag: boolean
  number: number
  texts: string[]
  'text|null': string | null
}
type Kind = keyof Kinds
type Shape = { readonly [name: string]: Kind | `${Kind}?` }
type ValueOf<K> = K extends `${infer Base extends Kind}?`
  ? Kinds[Base] | undefined
  : K extends Kind
    ? Kinds[K]
    : never
export type Members<S extends Shape> = { [N in keyof S]: ValueOf<S[N]> }

const textCharsMax = 2_000
const textsMax = 1_000

/**
 * A `?` marks what may be left out or null; `text|null` tells the two apart. Throws 400 `invalid_body` naming each
 * member that is not as wanted.
 */
export async function readMembers<const S extends Shape>(request: Request, shape: S): Promise<Members<S>> {
  const bytes = { bytesMax: limits.jsonBodyBytesMax }
  const body: { [name: string]: unknown } = await readJsonObject(request, bytes, { emptyIsObject: true })
  const issues: Issue[] = []
  const out: { [name: string]: unknown } = {}
  for (const [name, wanted] of Object.entries(shape)) {
    const optional = wanted.endsWith('?')
    const kind = (optional ? wanted.slice(0, -1) : wanted) as Kind
    const value = kind === 'text|null' ? body[name] : (body[name] ?? undefined)
    if (value !== undefined) {
      const problem = problemOf(kind, value)
      if (problem === null) out[name] = value
      else issues.push({ path: name, code: problem[0], message: `${name} ${problem[1]}` })
    } else if (!optional) issues.push({ path: name, code: 'required', message: `${name} is missing` })
  }
  for (const name of Object.keys(body)) {
    if (Object.hasOwn(shape, name)) continue
    const path = name.slice(0, 60)
    issues.push({ path, code: 'unknown', message: `${path} is not a member here` })
  }
  if (issues.length > 0) throw new AppError('invalid_body', issues[0]!.message, { issues })
  return out as Members<S>
}

/** A 400 that names the one member at fault. */
export function wrongMember(path: string, message: string, code = 'wrong_format'): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, message, code }] })
}

function problemOf(kind: Kind, value: unknown): [code: string, message: string] | null {
  switch (kind) {
    case 'text|null':
      return value === null ? null : problemOf('text', value)
    case 'text':
      if (typeof value !== 'string') return ['wrong_type', 'must be text']
      return value.length > textCharsMax ? ['too_long', 'is too long'] : null
    case 'flag':
      return typeof value === 'boolean' ? null : ['wrong_type', 'must be true or false']
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? null : ['wrong_type', 'must be a number']
    case 'texts': {
      if (!Array.isArray(value) || value.length > textsMax) return ['wrong_type', 'must be a list of texts']
      const isText = (each: unknown) => typeof each === 'string' && each.length <= textCharsMax
      return value.every(isText) ? null : ['wrong_type', 'must be a list of texts']
    }
  }
}
