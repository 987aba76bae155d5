/** The form of one option of the command line, the environment and the file. */
import type { VerbName } from './verb-names.ts'

export interface Option<T> {
  read: (text: string) => T
  /** The words it takes, for completion in shells; of a list, each of its items. */
  choices?: readonly string[]
  /** What stands for the value in help; null for a switch that takes none. */
  value: string | null
  default: string | null
  help: string
  verbs: readonly VerbName[] | 'all'
  /** Verbs that refuse to run without it. */
  neededBy?: readonly VerbName[]
  /** Never shown again, may come from a file named by `…_FILE`. */
  secret?: true
  /** A secret on the command line would be in the process list: environment only. */
  environmentOnly?: true
  /** Repeats add up instead of the last one winning: things a record has several of. */
  adds?: true
  /** The option says where the file is, so it cannot stand in it. */
  notInFile?: true
  /** Makes sense only on the line itself. */
  flagOnly?: true
}

/** An option without a default is null when nobody gives it. */
export function option<T, const D extends string | null>(
  given: Omit<Option<T>, 'default'> & { default: D },
): Omit<Option<T>, 'default'> & { default: D } {
  return given
}
