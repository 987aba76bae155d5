/**
 * `bun scripts/user-strings.ts [--sample 100] [--seed 19]`: the texts of the product that people read, with their
 * places; a sample of them by a fixed seed for whoever reads them aloud.
 */
import { parseArgs } from 'node:util'
import { readSources } from '../tests/tidy/source.ts'
import { userStrings } from '../tests/tidy/user-strings.ts'

const { values } = parseArgs({
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '19' } },
})
const all = readSources().flatMap(userStrings)
const chosen =
  values.sample === undefined
    ? all
    : all
        .map((each) => ({ each, order: Bun.hash(`${values.seed}:${each.path}:${each.text}`) }))
        .toSorted((a, b) => (a.order < b.order ? -1 : 1))
        .slice(0, Number(values.sample))
        .map(({ each }) => each)
for (const { path, line, text } of chosen) process.stdout.write(`${path}:${line}: ${text}\n`)
process.stderr.write(`${chosen.length} of ${all.length}\n`)
