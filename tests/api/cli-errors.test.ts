/** Errors of the command line on stderr: one line of text, or one JSON object with --json. */
import { afterAll, expect, test } from 'bun:test'
import { cli } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

const temp = tempDir('cli-errors')
afterAll(() => temp.remove())

const text = expect.any(String) as string
const cases: [what: string, args: string[], code: number, problem: object][] = [
  ['an unknown flag', ['org', 'list', '--colour'], 2, { error: 'wrong_usage', message: text, hint: text }],
  ['an unknown verb', ['dance'], 2, { error: 'wrong_usage', message: text, hint: text }],
  [
    'what is taken',
    ['org', 'create', '--name', 'x', '--slug', 'default'],
    1,
    { error: 'conflict', message: text },
  ],
  ['what is not there', ['key', 'revoke', 'key_none'], 1, { error: 'not_found', message: text }],
]

test.each(cases)(
  '%s',
  async (_, args, code, problem) => {
    const options = { dataDir: temp.join('data') }
    const asJson = await cli([...args, '--json'], options)
    expect([asJson.code, asJson.stdout]).toEqual([code, ''])
    expect(asJson.stderr).toMatch(/^[^\n]+\n$/)
    const { message } = JSON.parse(asJson.stderr) as { message: string }
    expect(JSON.parse(asJson.stderr)).toMatchObject(problem)
    const asText = await cli(args, options)
    expect([asText.code, asText.stdout]).toEqual([code, ''])
    expect(asText.stderr).toStartWith('sightglass: ')
    expect(asText.stderr).toContain(message)
  },
  20_000,
)

test('an environment variable selects JSON like the flag, and the flag wins', async () => {
  const options = { dataDir: temp.join('data'), env: { SIGHTGLASS_JSON: 'true' } }
  expect(JSON.parse((await cli(['dance'], options)).stderr)).toMatchObject({ error: 'wrong_usage' })
  expect((await cli(['dance', '--json=false'], options)).stderr).toStartWith('sightglass: ')
}, 90_000)
