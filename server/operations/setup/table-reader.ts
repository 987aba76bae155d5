/** Reads the fields of one TOML table by name and type. A field that no reader reads is an error. */
import { UsageError } from '../../errors.ts'
import { nearest } from '../../text/text.ts'

type Problem = (text: string) => string | null

/** Each reader records its field, so that `done` can report the rest. */
export interface TableReader {
  path: string
  at: string
  text(name: string, problem: Problem): string
  textOrNull(name: string, problem: Problem): string | null
  texts(name: string): string[]
  /** The raw value, for a reader that throws its own message. */
  read<T>(name: string, reader: (value: unknown) => T): T
  flag(name: string): boolean
  wholeNumber(name: string, min: number, max: number): number // max by default
  time(name: string, read: (text: string) => number | null): number | null
  tables(name: string): TableReader[]
  /** Throws for a field that no reader has read. */
  done(): void
}

export function readTable(table: unknown, path: string, where: { where(path: string): string }): TableReader {
  const at = where.where(path)
  if (typeof table !== 'object' || table === null || Array.isArray(table))
    throw new UsageError(`${at}: must be a table`)
  const values = table as { [name: string]: unknown }
  const known: string[] = []
  const pathOf = (name: string) => (path === '' ? name : `${path}.${name}`)
  const wrong = (name: string, why: string) => new UsageError(`${where.where(pathOf(name))}: ${why}`)

  const valueOf = (name: string): unknown =>
    known.push(name) > 0 && Object.hasOwn(values, name) ? values[name] : undefined

  function textOrNull(name: string, problem: Problem): string | null {
    const value = valueOf(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw wrong(name, 'must be a string')
    const text = value.trim()
    const why = problem(text)
    if (why !== null) throw wrong(name, why)
    return text
  }

  const list = (name: string, what: string): unknown[] =>
    listOf(valueOf(name), wrong(name, `must be a list of ${what}`))

  return {
    path,
    at,
    textOrNull,
    text(name, problem) {
      const value = textOrNull(name, problem)
      if (value === null) throw new UsageError(`${at}: ${name} is missing`)
      return value
    },
    texts(name) {
      const texts = list(name, 'strings')
      if (!texts.every((text) => typeof text === 'string')) throw wrong(name, 'must be a list of strings')
      return [...new Set(texts)]
    },
    read: (name, reader) =>
      withPosition(
        () => reader(valueOf(name)),
        (why) => wrong(name, why),
      ),
    flag(name) {
      const value = valueOf(name) ?? false
      if (typeof value === 'boolean') return value
      throw wrong(name, 'must be true or false')
    },
    wholeNumber(name, min, max) {
      const value = valueOf(name) ?? max
      if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
      throw wrong(name, `must be a whole number from ${min} to ${max}`)
    },
    time(name, read) {
      const text = textOrNull(name, () => null)
      const ms = text === null ? null : read(text)
      if (text === null || ms !== null) return ms
      throw wrong(name, 'must be a time such as 2027-01-31T18:00:00Z or a date such as 2027-01-31')
    },
    tables: (name) =>
      list(name, 'tables').map((each, index) => readTable(each, `${pathOf(name)}[${index}]`, where)),
    done() {
      const unknown = Object.keys(values).find((name) => !known.includes(name))
      if (unknown === undefined) return
      const near = nearest(unknown, known)
      throw wrong(unknown, near === null ? 'unknown field' : `unknown field; did you mean ${near}?`)
    },
  }
}

function listOf(value: unknown, wrong: Error): unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw wrong
  return value
}

/** Adds the position in the file to the message of a reader. */
function withPosition<T>(read: () => T, wrong: (why: string) => Error): T {
  try {
    return read()
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
}
