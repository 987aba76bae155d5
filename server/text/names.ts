/** Names that people give, such as those of organizations, keys and saved views: every character can be seen. */

import { limits } from '../limits.ts'

/**
 * Characters without a shape of their own: controls, formats (direction marks, zero-width characters, tags), line and
 * paragraph separators, surrogates, private and unassigned ones, fillers and variation selectors, and the blank of
 * Braille. Two names that differ in one of them look the same, or are read in another order than they are stored.
 */
const unseen = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u

/** Joins emoji (a family, a profession), and selects how an emoji or a keycap is drawn. */
const emojiParts = new RegExp(
  [
    String.raw`(?<=\p{Extended_Pictographic}[\u{fe0f}\p{Emoji_Modifier}]?)\u200d(?=\p{Extended_Pictographic})`,
    String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]`,
    String.raw`(?<=[0-9#*])\ufe0f(?=\u20e3)`,
  ].join('|'),
  'gu',
)

/**
 * Joiners that change the visible form of a word: between Arabic letters (Persian needs them), and after the virama of
 * an Indic script, as in names of domains (RFC 5892, appendix A).
 */
const joinersOfWords = new RegExp(
  [
    String.raw`(?<=[\p{Script=Arabic}&&\p{L}]\p{M}*)\u200c(?=[\p{Script=Arabic}&&\p{L}])`,
    String.raw`(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d](?=\p{L})`,
  ].join('|'),
  'gv',
)

/** A character that has a shape: a name of spaces or of combining marks alone has none. */
const visibleChar = /[\p{L}\p{N}\p{P}\p{S}]/u

/** What is wrong with the characters of a name, as a predicate; null when each can be seen. */
export function unseenProblem(name: string): string | null {
  // Each allowed one is replaced by a letter, so that positions stay.
  const plain = name.replace(emojiParts, 'x').replace(joinersOfWords, 'x')
  const match = unseen.exec(plain)
  if (match === null) return null
  const position = [...plain.slice(0, match.index)].length + 1
  return `must not contain characters that cannot be seen, such as ${codePointName(match[0])} at position ${position}`
}

/** What is wrong with a trimmed name, as a predicate; null when it is valid. */
export function nameProblem(
  name: string,
  { optional = false, charsMax = limits.labelCharsMax } = {},
): string | null {
  if (optional && name === '') return null
  const chars = [...name].length
  if (chars === 0 || chars > charsMax)
    return optional
      ? `must have at most ${charsMax} characters, without line breaks`
      : `must have 1 to ${charsMax} characters, without line breaks`
  return unseenProblem(name) ?? (visibleChar.test(name) ? null : 'must have a character that can be seen')
}

function codePointName(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
}
