/** The rule that a test of the suites for both engines leaves one out only if the list says so and why. */
import { type Finding, lineAt, type Source } from './source.ts'

interface Lists {
  files: { [path: string]: string }
  tests: { [path: string]: { [test: string]: string } }
}

const ofBoth = /^tests\/(api|e2e|regressions)\/.*\.test\.ts$/
const oneEngine = /sightglass\.db|from '(\.\.\/)+db\/sqlite\//

/** Tests and list agree, and a file that names one engine's files or code is in the list. */
export function bothEngines(sources: Source[], { files, tests }: Lists): Finding[] {
  const rule = 'both-engines'
  const findings: Finding[] = []
  for (const path of [...Object.keys(files), ...Object.keys(tests)])
    if (!sources.some((source) => source.path === path))
      findings.push({ rule, path, line: 1, message: 'is in the list and does not exist' })
  for (const { path, text } of sources) {
    if (!ofBoth.test(path)) continue
    const marked = [...text.matchAll(/\bfolderTest\(\s*(['"`])([^]*?)\1/g)]
    const listed = tests[path] ?? {}
    for (const { index, 2: name = '' } of marked)
      if (listed[name] === undefined)
        findings.push({ rule, path, line: lineAt(text, index), message: `"${name}" is not in the list` })
    for (const name of Object.keys(listed))
      if (!marked.some(({ 2: markedName }) => markedName === name))
        findings.push({ rule, path, line: 1, message: `is listed with "${name}", which is no folderTest` })
    const names = oneEngine.exec(text)
    if (names !== null && files[path] === undefined && marked.length === 0)
      findings.push({ rule, path, line: lineAt(text, names.index), message: 'names one engine: list it' })
  }
  return findings
}
