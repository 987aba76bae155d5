/** `sightglass site policy`: the robots.txt of a site, its versions, and what a new one would change. */
import { firstBytes, openRegularFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { robotsBytesMax } from '../../../db/rules/robots.ts'
import type { Json } from '../../../db/contract/store.ts'
import { isoTime, parseTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import {
  robotsDetail,
  robotsText,
  robotsViews,
  setRobots,
  testRobots,
  type RobotsDetail,
  type RobotsTestView,
  type RobotsView,
  type SetView,
} from '../../robots/robots.ts'
import { numberOf, textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { machineIn, withData } from '../data-command.ts'
import { text, wholeNumber } from '../option.ts'
import { orgOption } from '../options.ts'
import { columns, minute, oneLine, printAnswer } from '../print.ts'

const options = {
  site: { ...text('SITE_ID', 'the site'), needed: true },
  robots: { ...text('FILE', 'robots.txt to set or to test, or - for standard input'), flagOnly: true },
  from: {
    ...text('TIME', 'since when it is in force, such as 2026-11-20T12:00:00Z; by default now'),
    flagOnly: true,
  },
  ...orgOption,
} as const

type Given = Invocation<typeof options>

export const sitePolicy: Noun = {
  group: 'Sites and keys',
  commands: [
    command({
      name: 'site policy',
      summary: 'set, show, list or test the robots.txt of a site',
      arguments: 'set|show|list|test [VERSION]',
      argumentsMax: 2,
      about: [
        'Each request by an agent in an access log is judged by the robots.txt that was in force at its time (RFC 9309). "set" stores a version; an unchanged file makes none. A version with --from in the past counts for logs that are imported afterwards. The newest 100 versions of a site are stored.',
        '"test" judges the requests of the last 30 days by a file that is not in force yet, and shows which agents it would disallow. "serve --robots SITE_ID=FILE" sets a version whenever the file changes.',
      ],
      examples: [
        'sightglass site policy set --site shop --robots /var/www/robots.txt',
        'sightglass site policy set --site shop --robots old.txt --from 2026-11-01T00:00:00Z',
        'sightglass site policy test --site shop --robots new.txt',
        'sightglass site policy list --site shop',
        'sightglass site policy show 3 --site shop',
      ],
      options,
      access: 'create',
      work: { set: setWork, show: showWork, list: listWork, test: testWork, text: textWork },
      run: runStep,
    }),
  ],
}

async function runStep(invocation: Given): Promise<number> {
  const { words, values } = invocation
  const params = { org: values.org, site: values.site }
  const step = words[0] ?? ''
  const call = async <A>(stepParams: Params, access: 'read' | 'create', show: (answer: A) => string) => {
    const callParams = { ...params, ...stepParams }
    const answer = await withData(invocation, access, (data) => data.call(`site policy ${step}`, callParams))
    printAnswer(values, answer as Params, () => show(answer as A))
    return 0
  }
  refuseUnused(invocation, step)
  switch (step) {
    case 'set':
      return call({ text: await fileOf(values.robots), from: timeOf(values.from) }, 'create', setText)
    case 'test':
      return call({ text: await fileOf(values.robots) }, 'read', testText)
    case 'show':
      return call({ version: versionOf(words[1]) }, 'read', detailText)
    case 'list':
      return call({}, 'read', listText)
    default:
      throw new UsageError(
        '"sightglass site policy" needs set, show, list or test',
        'sightglass help site policy',
      )
  }
}

/** Arguments that another step has. */
function refuseUnused({ words, values }: Given, step: string): void {
  const wrong = [
    values.robots !== null && step !== 'set' && step !== 'test' ? '--robots' : null,
    values.from !== null && step !== 'set' ? '--from' : null,
    words[1] !== undefined && step !== 'show' ? `"${words[1]}"` : null,
  ].find((argument) => argument !== null)
  if (wrong === undefined || !/^(?:set|test|show|list)$/.test(step)) return
  throw new UsageError(
    `${wrong} is not an option of "sightglass site policy ${step}"`,
    'sightglass help site policy',
  )
}

/** Null: the version in force. */
function versionOf(word: string | undefined): number | null {
  return word === undefined ? null : wholeNumber(1, 1e9)(word)
}

/** The text of the file, without reading more of it than may be stored. */
async function fileOf(path: string | null): Promise<string> {
  if (path === null) throw new UsageError('name the file with --robots FILE, or - for standard input')
  try {
    return robotsText(path === '-' ? await firstOfInput() : await firstOfFile(path), path)
  } catch (error) {
    if (error instanceof AppError) throw error
    throw new AppError('not_found', `${path} cannot be read (${unreadableReason(error)}).`)
  }
}

async function firstOfFile(path: string): Promise<Uint8Array> {
  const file = await openRegularFile(path, { follows: true })
  try {
    return await firstBytes(file, robotsBytesMax + 1)
  } finally {
    await file.close()
  }
}

async function firstOfInput(): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of Bun.stdin.stream()) {
    chunks.push(chunk)
    length += chunk.length
    if (length > robotsBytesMax) break
  }
  return Buffer.concat(chunks)
}

function timeOf(time: string | null): number | null {
  const ms = time === null ? null : parseTime(time)
  if (time !== null && ms === null)
    throw new UsageError(`"${time}" is not a time such as 2026-11-20T12:00:00Z`)
  return ms
}

async function setWork(context: WorkContext, params: Params): Promise<Json> {
  const actor = await machineIn(context.store, params)
  const fromMs = params['from'] == null ? null : numberOf(params, 'from')
  const change = { siteId: textOf(params, 'site'), text: textOf(params, 'text'), fromMs }
  return { ...(await setRobots(context, actor, change)) }
}

async function showWork({ store }: WorkContext, params: Params): Promise<Json> {
  const { orgId } = await machineIn(store, params)
  const version = params['version'] == null ? null : numberOf(params, 'version')
  return (await robotsDetail({ store }, orgId, textOf(params, 'site'), version)) as unknown as Json
}

/** Also for `import access`, which judges by these versions. */
async function listWork({ store }: WorkContext, params: Params): Promise<Json> {
  const { orgId } = await machineIn(store, params)
  const versions = await store.robots.list({ orgId, siteId: textOf(params, 'site') })
  return { versions: robotsViews(versions).map((view) => ({ ...view })) }
}

async function textWork({ store }: WorkContext, params: Params): Promise<Json> {
  const { orgId } = await machineIn(store, params)
  const query = { orgId, siteId: textOf(params, 'site'), version: numberOf(params, 'version') }
  return { text: (await store.robots.find(query))?.text ?? null }
}

async function testWork(context: WorkContext, params: Params): Promise<Json> {
  const { orgId } = await machineIn(context.store, params)
  const testInput = { siteId: textOf(params, 'site'), text: textOf(params, 'text') }
  return (await testRobots(context, orgId, testInput)) as unknown as Json
}

const number = (value: number): string => value.toLocaleString('en-US')

const rulesText = (rules: number): string => `${number(rules)} ${rules === 1 ? 'rule' : 'rules'}`

function ignoredText(ignored: number): string {
  return ignored === 0 ? '' : ` Crawlers ignore ${number(ignored)} ${ignored === 1 ? 'line' : 'lines'}.`
}

/** Several names on one line are a mistake that no crawler reports. */
function unmatchedText(unmatched: number): string {
  if (unmatched === 0) return ''
  const lines = unmatched === 1 ? '1 User-agent line names' : `${number(unmatched)} User-agent lines name`
  return ` ${lines} no crawler. Write one name per line.`
}

function setText({ siteId, state, version, from, rules, ignored, unmatched }: SetView): string {
  const versionText = `version ${version} of the robots.txt of ${siteId}`
  const resultText =
    state === 'same'
      ? `Nothing changed: ${versionText} has this text.`
      : `Stored ${versionText}, in force from ${minute(from)} UTC, with ${rulesText(rules)}.`
  return oneLine(resultText + ignoredText(ignored) + unmatchedText(unmatched))
}

function listText({ versions }: { versions: RobotsView[] }): string {
  if (versions.length === 0) return 'No robots.txt. Set one with "sightglass site policy set".'
  const rows = versions.map(({ version, from, until, bytes, setBy, digest }) => [
    String(version),
    minute(from),
    until === null ? 'in force' : minute(until),
    number(bytes),
    setBy,
    digest.slice(0, 12),
  ])
  return columns(['VERSION', 'FROM (UTC)', 'UNTIL', 'BYTES', 'SET BY', 'SHA-256'], rows)
}

/** The file with its line numbers. */
function detailText({ version, text, rules, ignored, unmatched, notes }: RobotsDetail): string {
  const { siteId, from, until, setBy } = version
  const end = until === null ? 'in force' : `until ${minute(until)}`
  const lines = text
    .split(/\r\n|\r|\n/)
    .map((line, index) => `${String(index + 1).padStart(6)}  ${oneLine(line)}`)
  const usage = notes.filter(({ kind }) => kind === 'content-usage')
  const unmatchedNotes = notes.filter(({ kind }) => kind === 'unmatched')
  return [
    oneLine(`Version ${version.version} of ${siteId}, from ${minute(from)} UTC, ${end}, set by ${setBy}.`),
    `${rulesText(rules)}.${ignoredText(ignored)}${unmatchedText(unmatched)}`,
    ...unmatchedNotes.map(({ line, text: value }) => oneLine(`Line ${line}: no crawler is named ${value}`)),
    ...usage.map(({ line, text: value }) => oneLine(`Line ${line}: content usage ${value}`)),
    '',
    ...lines,
  ].join('\n')
}

function testText(result: RobotsTestView): string {
  const { requests, disallowed, wasDisallowed, agents, complete, exactSinceMs } = result
  const { queryRules, ignored, unmatched } = result
  if (requests === 0)
    return 'No requests by agents in the last 30 days. Import an access log with "sightglass import access".'
  const rows = agents.map(({ name, ...agent }) => [
    name,
    number(agent.requests),
    number(agent.disallowed),
    number(agent.wasDisallowed),
    agent.pages.map(({ page, line }) => `${page} (line ${line})`).join(' '),
  ])
  const since = complete ? 'the last 30 days' : `the time since ${minute(isoTime(exactSinceMs))} UTC`
  const counted = `${number(disallowed)} would be disallowed, ${number(wasDisallowed)} were.`
  const queryText = `${rulesText(queryRules)} with a query cannot match, because queries are not stored.`
  const lines = [
    `${number(requests)} requests of ${since}: ${counted}`,
    ...(queryRules === 0 ? [] : [queryText]),
    ...(ignored === 0 ? [] : [ignoredText(ignored).trim()]),
    ...(unmatched === 0 ? [] : [unmatchedText(unmatched).trim()]),
    columns(['AGENT', 'REQUESTS', 'DISALLOWED', 'BEFORE', 'PAGES'], rows),
  ]
  return lines.join('\n')
}
