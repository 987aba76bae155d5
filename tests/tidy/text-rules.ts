/** Rules about one file's text: its first line, sizes, names, and words and calls that are not allowed. */
import { blank, type Finding, isCode, isTest, lineAt, type Source } from './source.ts'

export type FileRule = (source: Source) => Finding[]

const lineCharsMax = 120

/** The first line says in a sentence what the file is. Styles beside a component are covered by the component's. */
export const header: FileRule = ({ path, text }) => {
  const comment = /^(?:#!.*\n)?\/\*\*?\s*([\s\S]*?)\s*\*\//.exec(text)?.[1]
  const sqlLine = /^-- (.*)/.exec(text)?.[1]
  const isAlone = path.endsWith('.sql') || /^web\/styles\/.*\.css$/.test(path)
  if (!isCode(path) && !isAlone) return []
  const words = (path.endsWith('.sql') ? sqlLine : comment)?.replace(/^\s*\*\s?/gm, '').trim() ?? ''
  const isSentence = /^\S+(\s+\S+)+/.test(words) && (path.endsWith('.sql') || /[.!?:)`]$/.test(words))
  return isSentence
    ? []
    : [{ rule: 'header', path, line: 1, message: 'no sentence that says what the file is' }]
}

/** A long string or pattern stays whole, so that it can be searched for; only what is around it counts. */
export const lineLength: FileRule = ({ path, text }) => {
  if (!isCode(path) && !path.endsWith('.css')) return []
  const long = text.split('\n').some((line) => line.length > lineCharsMax)
  if (!long) return []
  const lines = (isCode(path) ? blank(text, { strings: true, comments: false }) : text).split('\n')
  return lines.flatMap((line, index) => {
    const chars = isCode(path) ? line.replace(/(['"`/]) +\1/g, '$1$1').length : line.length
    const message = `${chars} characters, ${lineCharsMax} allowed`
    return chars <= lineCharsMax ? [] : [{ rule: 'line-length', path, line: index + 1, message }]
  })
}

/** Files are kebab-case and named for what they do. */
export const fileName: FileRule = ({ path }) => {
  const parts = path.split('/')
  const name = parts.at(-1) ?? ''
  const finding = (message: string): Finding[] => [{ rule: 'file-name', path, line: 1, message }]
  if (!/^\.?[a-z0-9]+([-_][a-z0-9]+)*(\.[a-z0-9]+)+$/.test(name) && !/^[A-Z]+\.md$/.test(name)) {
    return finding('not kebab-case')
  }
  if (isCode(path) && name.includes('_')) return finding('not kebab-case')
  if (/^index\.tsx?$/.test(name)) return finding('a barrel: import the file that has it')
  const empty = /(^|-)(utils?|helpers?|manager|common|misc|lib|src)(\.|$)/
  if (parts.some((part) => empty.test(part))) return finding('a name that says nothing: name what it does')
  return []
}

interface Ban {
  rule: string
  pattern: RegExp
  message: string
  /** Where the rule holds; everywhere in code when left out. */
  where?: (path: string) => boolean
}

const isServerSide = (path: string): boolean => /^(server|db)\//.test(path) && !isTest(path)
/** The examples of the client package are somebody else's programs. */
const isProduct = (path: string): boolean =>
  /^(server|db|web|sdk(?!\/examples))\//.test(path) && !isTest(path)

/** Looked for in code without its comments and strings. */
const bans: Ban[] = [
  {
    rule: 'environment',
    pattern: /\b(process|Bun|import\.meta)\.env\b/,
    message: 'only server/system/environment.ts reads the environment',
    where: (path) => isProduct(path) && path !== 'server/system/environment.ts',
  },
  {
    rule: 'time',
    pattern: /\bDate\.now\b|\bnew Date\(\)|\bDate\(\)/,
    message: 'only clock.ts reads the time',
    where: (path) => isProduct(path) && !/^(server|web\/app|sdk\/platform)\/clock\.ts$/.test(path),
  },
  {
    rule: 'random',
    pattern: /\brandomUUID|\brandomBytes|\bgetRandomValues/,
    message: 'only server/ids.ts makes ids',
    where: (path) => isServerSide(path) && path !== 'server/ids.ts',
  },
  {
    rule: 'console',
    pattern: /\bconsole\s*[.[]/,
    message: 'the log is log.ts, verbs print what they answer',
    where: (path) => isProduct(path) && !path.startsWith('server/cli/'),
  },
  {
    rule: 'stored-json',
    pattern: /\bJSON\.parse\([\w.]*\bjson\)/,
    message: 'stored events are parsed on a reader thread: add an engine verb',
    where: (path) => path.startsWith('server/') && !isTest(path),
  },
  { rule: 'any', pattern: /(:|\bas|[<,|&]|=>)\s*any\b(?!\s*[:?(])/, message: 'say the type, or unknown' },
  {
    rule: 'enum',
    pattern: /^\s*(export )?(declare )?(const )?enum \w/m,
    message: 'a union of words instead',
  },
  { rule: 'namespace', pattern: /^\s*(export )?(namespace|module) \w+ \{/m, message: 'a module instead' },
  {
    rule: 'focus',
    pattern: /\b(test|it|describe)(\.\w+)*\.(only|skip|todo|skipIf|todoIf)\b/,
    message: 'every test runs',
  },
  {
    rule: 'awaited-by-expect',
    pattern: /\)\s*\.(rejects|resolves)\s*\./,
    message:
      'the runner then drives the event loop itself and may hang: await the promise, compare what it gave',
    where: isTest,
  },
  {
    rule: 'class',
    pattern: /\bclass \w+(<[^>]*>)?\s+(?!extends \w*Error\b)/,
    message: 'functions and plain data do here; classes only for errors',
  },
  {
    rule: 'empty-name',
    pattern: /\b(class|function|const|let|interface|type)\s+\w*(Manager|Helper|Utils?|[a-z]Service)\b/,
    message: 'a name that says nothing: name what it does',
  },
  { rule: 'type-escape', pattern: /@ts-(ignore|nocheck)/, message: 'mend the type' },
]

/** All of them in one pass, so that the text is blanked once. */
export const bannedCode: FileRule = ({ path, text }) => {
  if (!isCode(path)) return []
  const code = blank(text, { strings: true })
  return bans.flatMap(({ rule, pattern, message, where: appliesTo }) => {
    if (appliesTo !== undefined && !appliesTo(path)) return []
    const searched = rule === 'type-escape' ? text : code // it lives in comments
    return [...searched.matchAll(new RegExp(pattern, `${pattern.flags}g`))].map((match) => ({
      rule,
      path,
      line: lineAt(searched, match.index + match[0].search(/\S/)),
      message,
    }))
  })
}

/** Work is finished or it is an issue. */
export const leftovers: FileRule = ({ path, text }) =>
  [...text.matchAll(/\b(TO[D]O|FIX[M]E|XX[X]|HAC[K])\b/g)].map((match) => ({
    rule: 'leftover',
    path,
    line: lineAt(text, match.index),
    message: match[0],
  }))
