/** The files the rules look at, and their text with comments and strings blanked out. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Source {
  /** From the repository's root, with forward slashes. */
  path: string
  text: string
}

/** Something a rule found. `line` counts from 1. */
export interface Finding {
  rule: string
  path: string
  line: number
  message: string
}

export const root = join(import.meta.dir, '../..')

const folders = '{server,web,db,sdk,scripts,tests}/**'
const kinds = '*.{ts,tsx,mjs,js,css,sql,html,svg,json,md}'

/** Every source file, sorted. Folders rather than git, so that the rules also run in an unpacked archive. */
export function readSources(): Source[] {
  return [`${folders}/${kinds}`, kinds]
    .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: true })])
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !path.includes('node_modules/'))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
}

export const isCode = (path: string): boolean => /\.(ts|tsx|mjs|js)$/.test(path)
/** Tests, and what only they use: all of tests/, and files such as `test-store.ts` beside them. */
export const isTest = (path: string): boolean =>
  /\.test\.tsx?$|(^|\/)test-[a-z-]+\.ts$/.test(path) || path.startsWith('tests/')

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}

/** What a character belongs to. A stack of these is what nested template literals need. */
type Mode = 'code' | 'template'

/** Replaces comments (unless kept) and, when asked, the insides of strings by spaces; lines and columns stay. */
export function blank(text: string, options: { strings: boolean; comments?: boolean }): string {
  const out: string[] = []
  const modes: { mode: Mode; braces: number }[] = [{ mode: 'code', braces: 0 }]
  let position = 0
  const keep = (count: number): void => {
    out.push(text.slice(position, position + count))
    position += count
  }
  const hide = (count: number): void => {
    out.push(text.slice(position, position + count).replace(/[^\n]/g, ' '))
    position += count
  }
  const literal = (count: number): void => (options.strings ? hide(count) : keep(count))
  while (position < text.length) {
    const top = modes[modes.length - 1]
    if (top === undefined) break
    const pair = text.slice(position, position + 2)
    if (top.mode === 'template') {
      if (pair[0] === '\\') literal(2)
      else if (pair[0] === '`') {
        modes.pop()
        keep(1)
      } else if (pair === '${') {
        modes.push({ mode: 'code', braces: 0 })
        keep(2)
      } else literal(1)
      continue
    }
    const length = spanLength(text, position)
    if (length.comment > 0) options.comments === false ? keep(length.comment) : hide(length.comment)
    else if (length.quoted > 0) {
      keep(1)
      literal(length.quoted - 2)
      keep(1)
    } else if (pair[0] === '`') {
      modes.push({ mode: 'template', braces: 0 })
      keep(1)
    } else {
      if (pair[0] === '{') top.braces++
      if (pair[0] === '}' && --top.braces < 0 && modes.length > 1) modes.pop()
      keep(1)
    }
  }
  return out.join('')
}

/** Length of the comment or of the quoted text (string or regular expression) that starts here; 0 when none does. */
function spanLength(text: string, start: number): { comment: number; quoted: number } {
  const match = (pattern: RegExp): number => {
    pattern.lastIndex = start
    return pattern.exec(text)?.[0].length ?? 0
  }
  const first = text[start]
  if (first === "'") return { comment: 0, quoted: match(/'(?:[^'\\\n]|\\.)*'/y) }
  if (first === '"') return { comment: 0, quoted: match(/"(?:[^"\\\n]|\\.)*"/y) }
  if (first !== '/') return { comment: 0, quoted: 0 }
  const comment = match(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/y)
  if (comment > 0) return { comment, quoted: 0 }
  // A slash after a value divides; after an operator, a bracket or a keyword it opens a regular expression.
  const charBefore = /(\S)\s*$/.exec(text.slice(Math.max(0, start - 40), start))?.[1] ?? '('
  const afterKeyword = /\b(return|typeof|case|in|of)\s*$/.test(text.slice(Math.max(0, start - 12), start))
  if (!/[(=,:[!&|?{};+*%~^>-]/.test(charBefore) && !afterKeyword) return { comment: 0, quoted: 0 }
  return { comment: 0, quoted: match(/\/(?![*/])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\//y) }
}
