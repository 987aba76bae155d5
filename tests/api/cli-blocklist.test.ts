/** `export blocklist` of the executable: counts of an imported log, the audit trail and wrong usage. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { startAppliance, type Appliance } from '../support/binary.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000) // the executable starts several times, on a machine that may be busy

const files = tempDir('blocklist')
let appliance: Appliance
beforeAll(async () => {
  appliance = await startAppliance()
})
afterAll(async () => {
  await appliance.stop()
  files.remove()
})

const blocklist = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await appliance.cli('export', 'blocklist', ...args)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

/** A time in the format of access logs. */
function logTime(ms: number): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) (\S+)/.exec(new Date(ms).toUTCString())!
  return `${day}/${month}/${year}:${time} +0000`
}

test('a blocklist has the requests of the last 30 days, and does not change without new ones', async () => {
  const today = Date.now()
  const log = files.join('access.log')
  const lines = [40, 3, 2].map(
    (days) => `8.8.8.8 - - [${logTime(today - days * 86_400_000)}] "GET / HTTP/1.1" 200 5 "-" "CCBot/2.0"\n`,
  )
  writeFileSync(log, lines.join(''))
  expect((await appliance.cli('import', 'access', log, '--site', 'shop')).code).toBe(0)
  const day = (days: number): string => new Date(today - days * 86_400_000).toISOString().slice(0, 10)
  const path = files.join('blocklist.conf')
  const args = ['--format', 'nginx', '--agent', 'ccbot', '--unverified', '--evidence-max-age', '36500']
  expect(await blocklist(...args, '--out', path)).toMatch(/^Wrote rules for \d\d agents to /)
  const text = readFileSync(path, 'utf8')
  expect(text).toStartWith(
    '# Made by: sightglass export blocklist --format nginx --agent ccbot --unverified\n',
  )
  expect(text).toContain(
    `# CCBot of Common Crawl (training, --agent CCBot): 2 requests, ${day(3)} to ${day(2)}.\n`,
  )
  expect(text).toContain(
    '# List gptbot of 2025-10-30, read 2026-08-20 at https://openai.com/gptbot.json: 17 networks.\n',
  )
  expect(await blocklist(...args)).toBe(text)
  const again = await appliance.cli('export', 'blocklist', ...args, '--out', path)
  expect([again.code, again.stderr]).toEqual([
    1,
    expect.stringContaining('already exists. (add --yes to replace it)'),
  ])
  expect(await blocklist(...args, '--out', path, '--yes', '--json')).toContain('"format":"nginx"')
  const document = JSON.parse(await blocklist('--format', 'json', '--vendor', 'Common Crawl')) as object
  expect(document).toMatchObject({
    refuse: [{ name: 'CCBot', requests: 2, firstSeen: day(3) }],
    refuseOutside: [],
  })
  const audit = await appliance.cli('export', 'audit')
  expect(audit.stdout).toMatch(/"blocklist\.exported".*"agents":\["ccbot"\].*"unverified":true/)
})

test('wrong usage says what is accepted', async () => {
  const refused = async (...args: string[]): Promise<[number, string]> => {
    const { code, stderr } = await appliance.cli('export', 'blocklist', ...args)
    return [code, stderr]
  }
  const says = (text: string): [number, string] => [2, expect.stringContaining(text) as string]
  expect(await refused('--purpose', 'training')).toEqual(
    says('needs --format nginx|caddy|apache|robots|json'),
  )
  expect(await refused('--format', 'iis', '--unverified')).toEqual(says('is not one of nginx, caddy, apache'))
  expect(await refused('--format', 'nginx')).toEqual(says('choose what to block'))
  expect(await refused('--format', 'nginx', '--purpose', 'fun')).toEqual(
    says('not one of training, search, assistant'),
  )
  expect(await refused('--format', 'nginx', '--agent', 'GPTBott')).toEqual(says('did you mean GPTBot?'))
  expect(await refused('--format', 'robots', '--unverified')).toEqual(says('robots.txt has no addresses'))
})
