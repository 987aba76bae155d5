/** The passwords attackers try first: the commonest 5,000 that our length rule would let pass, in lower case. */
import list from './common-passwords.txt' with { type: 'text' }

let known: Set<string> | null = null

/** `lower` is the password in lower case. The set is built on first use: most runs of the executable never ask. */
export function isCommonPassword(lower: string): boolean {
  known ??= new Set(list.split('\n'))
  return known.has(lower)
}
