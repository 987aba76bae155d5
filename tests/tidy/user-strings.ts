/** Collects the texts that people read: string literals and JSX text that look like prose, with their place. */
import { blank, isCode, isTest, lineAt, type Source } from './source.ts'

export interface UserString {
  path: string
  line: number
  text: string
}

/** Reads as prose: two words or more with lower-case letters, and nothing that only programs read. */
function isProse(text: string): boolean {
  const words = text.match(/[A-Za-z]*[a-z]{2,}[A-Za-z'’]*/g) ?? []
  if (words.length < 2 || !/[a-z]\s+\S/i.test(text)) return false
  if (/[;{}]|=>|&&|\(null\)|\w\(\w*\)/.test(text)) return false
  if (/\?\d|= \?|\bAS [a-z(]|\|\|| \+ expired|^AND |\bJOIN\b/.test(text)) return false // parts of SQL
  return !/^\s*(select|insert|update|delete from|create|pragma|with|begin|drop|alter|attach)\b|^\/|^--\w/i.test(
    text,
  )
}

/** Code between a comparison or a type argument and the next bracket, which looks like the text of an element. */
const codeLike =
  /\b(return|const|function|export|extends|await|new) |\?\?|\w\(|\)\)|: [A-Z]|\(\)|, 0\)| \| |\w\.\w|\w: \w/

/** The texts of one file; `${…}` in a template reads as `…`. */
export function userStrings({ path, text }: Source): UserString[] {
  if (!isCode(path) || isTest(path) || !/^(server|web|sdk|db)\//.test(path)) return []
  const code = blank(text, { strings: false })
  const hollow = blank(text, { strings: true })
  const strings: UserString[] = []
  const add = (index: number, raw: string): void => {
    const prose = raw.replaceAll(/\\n/g, '\n').replaceAll(/\s+/g, ' ').trim()
    if (isProse(prose)) strings.push({ path, line: lineAt(text, index), text: prose })
  }
  for (const { index, 0: quoted } of hollow.matchAll(/(['"])[ \n]*?\1/g)) {
    const isClass = /\bclass=(\{[^}]*)?$/.test(hollow.slice(Math.max(0, index - 90), index))
    if (!isClass) add(index, code.slice(index + 1, index + quoted.length - 1))
  }
  for (const { index, raw } of templates(code, hollow)) add(index, raw)
  if (path.endsWith('.tsx'))
    for (const { index, 1: inner = '' } of hollow.matchAll(/>([^<>{}=;]*[a-z][^<>{}=;]*)(?=[<{])/g))
      if (!codeLike.test(inner)) add(index, inner)
  return strings
}

/** Template literals, their expressions replaced by `…`. */
function templates(code: string, hollow: string): { index: number; raw: string }[] {
  const literals: { index: number; raw: string }[] = []
  let start = -1
  let depth = 0
  let raw = ''
  for (let position = 0; position < hollow.length; position++) {
    const char = hollow[position]
    if (start < 0) {
      if (char !== '`') continue
      start = position
      raw = ''
    } else if (depth > 0) {
      if (char === '{') depth++
      if (char === '}') depth--
    } else if (char === '$' && hollow[position + 1] === '{') {
      raw += '…'
      depth = 1
      position++
    } else if (char === '`') {
      literals.push({ index: start, raw })
      start = -1
    } else raw += code[position]
  }
  return literals
}
