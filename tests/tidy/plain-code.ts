/** Rules about plain code: names that say what they name, and literals that are written where they are used. */
import { blank, type Finding, isCode, isTest, lineAt, type Source } from './source.ts'

/** Pronouns, prepositions, determiners and participles: in a search result they say nothing. */
const vagueWords = new Set(
  `about above after against all any anyone anything are asked at before begun below between both by called done
  during each either everyone everything few for found from given gone held her here him himself his how in into
  is it its itself kept known least left less made many mine more most named needed neither nobody none nothing
  of on once one ones only onto other others ours over own rest said same seen sent some someone something still
  such taken than that theirs them then there these they this those through told tried under used wanted what
  when where which who whose why with within without yet yours`.split(/\s+/),
)

/** Names of the wire, of periods and of operands. */
const standardNames = new Set(['from', 'since', 'until', 'to', 'this', 'left', 'done'])

export interface DeclaredName {
  name: string
  index: number
  isVague: boolean
}

/** Variables, functions and parameters. Found by patterns, which is exact enough for a share. */
export function declaredNames({ text }: Source): DeclaredName[] {
  const code = blank(text, { strings: true })
  const names: DeclaredName[] = []
  const add = (list: string, index: number): void => {
    for (const part of list.split(',')) {
      const name = /^[\s.]*([A-Za-z_$][\w$]*)/.exec(part)?.[1]
      if (name === undefined) continue
      names.push({ name, index, isVague: vagueWords.has(name) && !standardNames.has(name) })
    }
  }
  for (const match of code.matchAll(/\b(?:const|let|function)\s+([A-Za-z_$][\w$]*)/g))
    add(match[1]!, match.index)
  for (const match of code.matchAll(/\b(?:const|let)\s+[{[]([^{}[\]=]*)[}\]]\s*(?:=|of\b)/g))
    add(match[1]!.replaceAll(/[\w$]+\s*:/g, ''), match.index) // `data: rows` declares `rows`
  for (const match of code.matchAll(/\bfunction\b[^(]*\(([^(){}]*)\)/g)) add(match[1]!, match.index)
  for (const match of code.matchAll(/\(([^(){}]*)\)(?:: [^=(){}]+)? =>/g)) add(match[1]!, match.index)
  return names
}

/** At most this share of the names of a product is vague; in the models it is 0 to 0.4 %. */
const vagueShareMax = 0.004

/** Lists the vague names when there are too many of them. */
export function vagueNames(sources: Source[]): Finding[] {
  const named = sources
    .filter(({ path }) => isCode(path) && !isTest(path))
    .flatMap((source) => declaredNames(source).map((declared) => ({ ...declared, source })))
  const vague = named.filter(({ isVague }) => isVague)
  if (vague.length <= named.length * vagueShareMax) return []
  return vague.map(({ name, index, source }) => ({
    rule: 'vague-name',
    path: source.path,
    line: lineAt(source.text, index),
    message: `"${name}" says nothing: name what it is`,
  }))
}

const spread = 'a literal spread into a literal: write its parts'
const together = 'assignments in one line: write one below the other'

/** Literals spread into literals, and lists that are taken apart where they are made. */
export function packedLines({ path, text }: Source): Finding[] {
  if (!isCode(path)) return []
  const code = blank(text, { strings: true })
  const finding = (index: number, message: string): Finding => {
    return { rule: 'packed-line', path, line: lineAt(text, index), message }
  }
  return [
    ...[...code.matchAll(/\.\.\.(?=[[{])/g)]
      .filter((match) => isWholeLiteral(code, match.index + 3))
      .map((match) => finding(match.index, spread)),
    ...[...code.matchAll(/\b(?:const|let) \[[^\]=.]*\] = (?=\[)/g)]
      .filter((match) => isWholeLiteral(code, match.index + match[0].length))
      .map((match) => finding(match.index, together)),
  ]
}

/** False where a method is called on the literal, where it is a pattern, and for lists of spreads alone. */
function isWholeLiteral(code: string, start: number): boolean {
  let depth = 0
  for (let index = start; index < code.length; index++) {
    if ('[{('.includes(code[index]!)) depth++
    if (']})'.includes(code[index]!)) depth--
    if (depth > 0) continue
    const next = /^\s*(\S)/.exec(code.slice(index + 1))?.[1] ?? ''
    const isSpreads = /^.\s*\.\.\./.test(code.slice(start))
    return !['.', ':', '='].includes(next) && !isSpreads
  }
  return false
}
