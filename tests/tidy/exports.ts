/** Finds exported functions and values that no other file imports: dead, or used at home only. Types may stay. */
import { dirname, join } from 'node:path/posix'
import { blank, type Finding, isCode, lineAt, type Source } from './source.ts'

const declared = /^export (?:async |declare )*(?:function\*?|const|let|class) ([\w$]+)/gm
const clause =
  /^(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?(\{[^}]*\}|\*\s*(?:as\s+[\w$]+)?)\s*from\s*['"]([^'"\n]+)['"]/gm
const dynamic = /\bimport\(\s*['"]([^'"\n]+)['"]/g

/** `entries` are read by something else than an import: a program's first file, a thread, a published package. */
export function deadExports(sources: Source[], isEntry: (path: string) => boolean): Finding[] {
  const usedNames = new Set<string>() // `path name`, or `path *`
  for (const { path, text } of sources) {
    if (!isCode(path)) continue
    const code = blank(text, { strings: false })
    const target = (specifier: string): string => join(dirname(path), specifier)
    for (const [, names = '', specifier = ''] of code.matchAll(clause)) {
      if (!specifier.startsWith('.')) continue
      if (names.startsWith('*')) usedNames.add(`${target(specifier)} *`)
      for (const name of names.slice(1, -1).split(','))
        usedNames.add(
          `${target(specifier)} ${
            name
              .trim()
              .replace(/^type\s+/, '')
              .split(' ')[0]
          }`,
        )
    }
    for (const [, specifier = ''] of code.matchAll(dynamic)) usedNames.add(`${target(specifier)} *`)
  }
  return sources.flatMap(({ path, text }) => {
    if (!isCode(path) || isEntry(path) || usedNames.has(`${path} *`)) return []
    return [...blank(text, { strings: true }).matchAll(declared)]
      .filter(([, name]) => !usedNames.has(`${path} ${name}`))
      .map(({ index, 1: name }) => {
        const message = `no file imports ${name}: drop the export, or the code`
        return { rule: 'dead-export', path, line: lineAt(text, index), message }
      })
  })
}
