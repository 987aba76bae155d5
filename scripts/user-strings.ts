/**
 * `bun scripts/user-strings.ts [folder …] [--sample 100] [--seed 19]`: the texts that users read, with their places.
 * With folders, the texts of those features only, to be read in one go; with `--sample`, as many chosen at random.
 */
import { parseArgs } from 'node:util'
import { readSources } from '../tests/tidy/source.ts'
import { userStrings } from '../tests/tidy/user-strings.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '19' } },
})
const folders = positionals.map((folder) => `${folder.replace(/\/$/, '')}/`)
const strings = readSources()
  .filter(({ path }) => folders.length === 0 || folders.some((folder) => path.startsWith(folder)))
  .flatMap((source) => userStrings(source).toSorted((a, b) => a.line - b.line))
const chosen =
  values.sample === undefined
    ? strings
    : strings
        .map((userString) => ({
          each: userString,
          order: Bun.hash(`${values.seed}:${userString.path}:${userString.text}`),
        }))
        .toSorted((a, b) => (a.order < b.order ? -1 : 1))
        .slice(0, Number(values.sample))
        .map(({ each: userString }) => userString)
for (const { path, line, text } of chosen) process.stdout.write(`${path}:${line}: ${text}\n`)
process.stderr.write(`${chosen.length} of ${strings.length}\n`)
