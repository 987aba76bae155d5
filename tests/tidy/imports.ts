/** Finds what a file imports, for types and for values, and where relative imports lead. */
import { dirname, join } from 'node:path/posix'
import { blank, isCode, lineAt, type Source } from './source.ts'

export interface Import {
  from: string // path of the importing file
  specifier: string
  /** Path of the imported file for relative imports; null for packages and built-ins. */
  to: string | null
  typeOnly: boolean
  line: number
}

const statement = /^(import|export)\b([^'"`;=]*?)\bfrom\s*['"]([^'"\n]+)['"]/gm
const sideEffect = /^import\s*['"]([^'"\n]+)['"]/gm
const dynamic = /\bimport\(\s*['"]([^'"\n]+)['"]/g

export function importsOf({ path, text }: Source): Import[] {
  if (!isCode(path)) return []
  const code = blank(text, { strings: false })
  const toImport = (specifier: string, typeOnly: boolean, index: number): Import => ({
    from: path,
    specifier,
    to: /^\.\.?\//.test(specifier) ? join(dirname(path), specifier) : null,
    typeOnly,
    line: lineAt(code, index),
  })
  return [
    ...[...code.matchAll(statement)].map((match) =>
      toImport(match[3] ?? '', isTypeOnly(match[2] ?? ''), match.index),
    ),
    ...[...code.matchAll(sideEffect)].map((match) => toImport(match[1] ?? '', false, match.index)),
    ...[...code.matchAll(dynamic)].map((match) => toImport(match[1] ?? '', false, match.index)),
  ]
}

/** `import type …`, or only `type x` in the braces. */
function isTypeOnly(clause: string): boolean {
  if (/^\s*type\b/.test(clause)) return true
  const names = /^\s*\{([\s\S]*)\}\s*$/
    .exec(clause)?.[1]
    ?.split(',')
    .filter((name) => name.trim() !== '')
  return names !== undefined && names.length > 0 && names.every((name) => /^\s*type\s/.test(name))
}

const quoted = /['"(]([\w./@$-]+\.(?:tsx?|mjs|css|sql|json|svg|html|md))['")]/g

/** Every file of `knownPaths` that this one names: imports, worker addresses, links of a page, spawned programs. */
export function referencesOf({ path, text }: Source, knownPaths: Set<string>): string[] {
  return [...text.matchAll(quoted)]
    .map((match) => match[1] ?? '')
    .flatMap((name) => [join(dirname(path), name), name.replace(/^\.\//, '')])
    .filter((target) => knownPaths.has(target))
}
