/** Reads the members of one table of a set-up file by name and kind; a member nobody asked for is a mistake. */
import { UsageError } from '../../errors.ts'
import { nearest } from '../../text/text.ts'

type Problem = (text: string) => string | null

/** Each reader says which member it takes, so that `done` can name what is left. */
export interface Members {
  path: string
  at: string
  text(name: string, problem: Problem): string
  textOrNull(name: string, problem: Problem): string | null
  texts(name: string): string[]
  /** The value as it stands, for a reader that says itself what is wrong with it. */
  read<T>(name: string, reader: (value: unknown) => T): T
  flag(name: string): boolean
  wholeNumber(name: string, min: number, max: number): number // max when it is left out
  time(name: string, read: (text: string) => number | null): number | null
  tables(name: string): Members[]
  /** Throws for a member that no reader took. */
  done(): void
}

export function membersOf(table: unknown, path: string, where: { where(path: string): string }): Members {
  const at = where.where(path)
  if (typeof table !== 'object' || table === null || Array.isArray(table))
    throw new UsageError(`${at}: this must be a table`)
  const values = table as { [name: string]: unknown }
  const taken: string[] = []
  const pathOf = (name: string) => (path === '' ? name : `${path}.${name}`)
  const wrong = (name: string, why: string) => new UsageError(`${where.where(pathOf(name))}: ${why}`)

  const take = (name: string): unknown =>
    taken.push(name) > 0 && Object.hasOwn(values, name) ? values[name] : undefined

  function textOrNull(name: string, problem: Problem): string | null {
    const value = take(name)
    if (value === undefined) return null
    if (typeof value !== 'string') throw wrong(name, 'must be a string')
    const text = value.trim()
    const why = problem(text)
    if (why !== null) throw wrong(name, why)
    return text
  }

  const list = (name: string, what: string): unknown[] =>
    listOf(take(name), wrong(name, `must be a list of ${what}`))

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
      saying(
        () => reader(take(name)),
        (why) => wrong(name, why),
      ),
    flag(name) {
      const value = take(name) ?? false
      if (typeof value === 'boolean') return value
      throw wrong(name, 'must be true or false')
    },
    wholeNumber(name, min, max) {
      const value = take(name) ?? max
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
      list(name, 'tables').map((each, index) => membersOf(each, `${pathOf(name)}[${index}]`, where)),
    done() {
      const strange = Object.keys(values).find((name) => !taken.includes(name))
      if (strange === undefined) return
      const near = nearest(strange, taken)
      throw wrong(strange, near === null ? 'unknown field' : `did you mean ${near}?`)
    },
  }
}

function listOf(value: unknown, wrong: Error): unknown[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw wrong
  return value
}

/** What a reader says is wrong, with the place in the file. */
function saying<T>(read: () => T, wrong: (why: string) => Error): T {
  try {
    return read()
  } catch (error) {
    throw wrong(error instanceof Error ? error.message : String(error))
  }
}
