/** Reads the fields of a small JSON body by name and type; rejects unknown fields. */
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
export type Fields<S extends Shape> = { [N in keyof S]: ValueOf<S[N]> }

const textCharsMax = 2_000
const textsMax = 1_000

/**
 * `?` marks a field that may be omitted or null; `text|null` distinguishes the two. Throws 400 `invalid_body` with one
 * issue per wrong field.
 */
export async function readFields<const S extends Shape>(request: Request, shape: S): Promise<Fields<S>> {
  const bytes = { bytesMax: limits.jsonBodyBytesMax }
  const body: { [name: string]: unknown } = await readJsonObject(request, bytes, { emptyIsObject: true })
  const issues: Issue[] = []
  const out: { [name: string]: unknown } = {}
  for (const [name, type] of Object.entries(shape)) {
    const optional = type.endsWith('?')
    const kind = (optional ? type.slice(0, -1) : type) as Kind
    const value = kind === 'text|null' ? body[name] : (body[name] ?? undefined)
    if (value !== undefined) {
      const problem = problemOf(kind, value)
      if (problem === null) out[name] = value
      else issues.push({ path: name, code: problem[0], message: `${name} ${problem[1]}` })
    } else if (!optional) issues.push({ path: name, code: 'required', message: `${name} is required` })
  }
  for (const name of Object.keys(body)) {
    if (Object.hasOwn(shape, name)) continue
    const path = name.slice(0, 60)
    issues.push({ path, code: 'unknown', message: `${path} is not a known field` })
  }
  if (issues.length > 0) throw new AppError('invalid_body', issues[0]!.message, { issues })
  return out as Fields<S>
}

/** A 400 that names the one wrong field. */
export function wrongField(path: string, message: string, code = 'wrong_format'): AppError {
  return new AppError('invalid_body', message, { issues: [{ path, message, code }] })
}

function problemOf(kind: Kind, value: unknown): [code: string, message: string] | null {
  switch (kind) {
    case 'text|null':
      return value === null ? null : problemOf('text', value)
    case 'text':
      if (typeof value !== 'string') return ['wrong_type', 'must be a string']
      return value.length > textCharsMax ? ['too_long', `must have at most ${textCharsMax} characters`] : null
    case 'flag':
      return typeof value === 'boolean' ? null : ['wrong_type', 'must be a boolean']
    case 'number':
      return typeof value === 'number' && Number.isFinite(value) ? null : ['wrong_type', 'must be a number']
    case 'texts': {
      if (!Array.isArray(value) || value.length > textsMax)
        return ['wrong_type', 'must be an array of strings']
      const isText = (each: unknown) => typeof each === 'string' && each.length <= textCharsMax
      return value.every(isText) ? null : ['wrong_type', 'must be an array of strings']
    }
  }
}
