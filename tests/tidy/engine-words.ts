/** No word of an engine outside of its folder: names, file names and texts that only one engine has. */
import { type Finding, isCode, isTest, lineAt, type Source } from './source.ts'

/** Identifiers are matched whole, such as `sqliteTable` and `walBytes`, so that the message names them. */
const engineWords = new RegExp(
  [
    String.raw`[\w-]*(?:[sS]qlite|SQLite|[pP]ostgres|PostgreSQL|[pP]ragma|PRAGMA)[\w-]*`,
    String.raw`[\w-]*(?:[vV]acuum|VACUUM|[pP]gbouncer|\bpg_)[\w-]*`,
    String.raw`sightglass\.db(?![a-z])[\w-]*`,
    '[wW]rite-ahead',
    String.raw`(?<![A-Za-z])(?:wal|WAL|Wal)(?![a-z])\w*`,
    String.raw`\w*[a-z]Wal(?![a-z])\w*`,
  ].join('|'),
  'g',
)

const isShared = (path: string): boolean =>
  /^(?:server|web|sdk|db)\//.test(path) && !/^db\/(?:sqlite|postgres)\//.test(path)

export function engineWordsIn({ path, text }: Source): Finding[] {
  if (!isShared(path) || !isCode(path) || isTest(path)) return []
  const inText = [...text.matchAll(engineWords)].map((match) => ({
    word: match[0],
    line: lineAt(text, match.index),
  }))
  const inName = [...(path.split('/').at(-1) ?? '').matchAll(engineWords)].map(([word]) => ({
    word,
    line: 1,
  }))
  return [...inName, ...inText].map(({ word, line }) => {
    return { rule: 'engine-words', path, line, message: `"${word}" is a word of one engine` }
  })
}
