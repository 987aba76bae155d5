/** `sightglass import access`: stores the agents in access logs of web servers; what is stored already is skipped. */
import type { AccessLines, EventRecord, Json, StoredPack } from '../../../db/contract/store.ts'
import type { Evidence } from '../../../sdk/judge/judge.ts'
import type { AccessOptions } from '../../access/agent-events.ts'
import { withoutForwarded, type Guess } from '../../access/detect-format.ts'
import { importRun, planLogs, type Appended, type LogStore, type Plan } from '../../access/import-logs.ts'
import type { AgentCount, Sums } from '../../access/import-sums.ts'
import { findSource, type FoundSource } from '../../access/source-names.ts'
import { startHostNames } from '../../system/host-names.ts'
import type { FileProblem } from '../../access/input.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime, systemClock } from '../../clock.ts'
import { AppError, UsageError, type Issue } from '../../errors.ts'
import { applianceObserver } from '../../../db/contract/provenance.ts'
import { evidenceOf } from '../../evidence/evidence.ts'
import type { JudgedFields } from '../../evidence/judged-record.ts'
import { importKeyId } from '../../ids.ts'
import { acceptLines } from '../../ingest/accept.ts'
import type { MadeEvents } from '../../ingest/check-event.ts'
import { limits } from '../../limits.ts'
import type { StoreAccess } from '../../runtime/store-access.ts'
import { loadRobots, type MarkRobots } from '../../robots/judge.ts'
import type { RobotsView } from '../../robots/robots.ts'
import { numberOf, textOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { cutChars } from '../../text/text.ts'
import { command, type Noun } from '../command.ts'
import { requireOrg, withData } from '../data-command.ts'
import { toggle } from '../option.ts'
import { accessOptions, judgingOptions } from '../access-options.ts'
import { orgOption } from '../options.ts'
import { columns, oneLine, print, printAnswer } from '../print.ts'

const pathsMax = 100_000

export const importAccess: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'import access',
      summary: 'store the agents that access logs of web servers show',
      arguments: 'PATH …',
      argumentsMax: pathsMax,
      about: [
        'A path is a file, a folder, a pattern in quotes, or - for standard input. Files may be compressed with gzip or zstd, or with bzip2 where that program is installed. They are read in order of time. The format is recognized by the first 100 lines: those of nginx, Apache, Caddy, Traefik, IIS, HAProxy, AWS, Google Cloud, Cloudflare, Vercel and Netlify, in text or JSON.',
        '--format takes one of their names, a format string such as GoAccess reads it, or names of JSON fields: json:time=ts,ip=client,userAgent=ua,status=code,path=url.',
        'Each request by an agent becomes an event agent.requested, the start of its session agent.detected, and a person whom an assistant sent agent.referred. Other requests are only counted. The claim of each agent is judged by its address and the lists of "sightglass evidence". Addresses are not stored, and query strings only as --keep-query says. Importing a file again stores nothing twice, also compressed, renamed or grown. Exit code 1 when a file cannot be read to its end; lines that do not fit the format are counted and named.',
      ],
      examples: [
        'sightglass import access /var/log/nginx/access.log* --site shop',
        'sightglass import access access.log --site shop --dry-run',
        'ssh web cat /var/log/apache2/access.log | sightglass import access - --site shop',
      ],
      options: {
        ...accessOptions,
        'dry-run': toggle('read the logs and show what they contain, without storing anything'),
        ...judgingOptions,
        ...orgOption,
      },
      work: { begin: beginImport, position: readPosition, append: appendLines },
      run: async (invocation) => {
        const { words, values } = invocation
        const siteId = values.site
        if (words.length === 0) throw new UsageError('name a log, a folder, or - for standard input')
        if (siteId === '' || siteId.length > limits.idCharsMax)
          throw new UsageError(`--site has 1 to ${limits.idCharsMax} characters`)
        const plan = await planLogs(words, values.format)
        if (plan.logs.length === 0 && plan.problems.length === 0)
          throw new AppError('not_found', `No access log in ${words.join(', ')}.`, skippedHint(plan))
        if (!values.json) print(planText(plan, values['trusted-proxy'].length > 0))
        const options = {
          siteId,
          keepQuery: values['keep-query'],
          keepAddresses: values['keep-addresses'],
          trustedProxies: values['trusted-proxy'],
          evidenceMaxAgeDays: values['evidence-max-age'],
          observedBy: applianceObserver,
          hostNames: values['evidence-dns'] ? startHostNames(systemClock) : null,
        }
        const finish = (result: Result): number => {
          printAnswer(values, result as unknown as { [name: string]: Json }, () => resultText(result))
          return result.problems.length > 0 ? 1 : 0
        }
        if (values['dry-run'] || plan.logs.length === 0)
          return finish(await readAll(plan, { ...options, evidence: await evidenceFrom(null) }, null))
        return await withData(invocation, 'create', async (data) => {
          const path = plan.logs[0]!.file.path
          const beginParams = { org: values.org, site: siteId, files: plan.logs.length, path }
          const { orgId } = (await data.call('import access begin', beginParams)) as { orgId: string }
          const evidence = await evidenceFrom(data)
          const robots = await robotsOf(data, { org: values.org, site: siteId })
          const judged = { ...options, evidence, robots }
          return finish(await readAll(plan, judged, accessStore(data, orgId, siteId)))
        })
      },
    }),
  ],
}

/** The evidence that the appliance judges by; without one the bundled evidence. */
async function evidenceFrom(data: StoreAccess | null): Promise<Evidence> {
  const stored = data === null ? null : await data.call('evidence show', {})
  return (await evidenceOf(stored as unknown as StoredPack | null)).evidence()
}

type Result = Omit<Sums, 'agents'> & {
  agents: AgentCount[]
  dryRun: boolean
  problems: FileProblem[]
  skipped: FileProblem[]
  files: Json[]
}

/** Reads every file of the plan. Without a store it is a dry run. */
async function readAll(plan: Plan, options: AccessOptions, store: LogStore | null): Promise<Result> {
  const run = importRun(options, store)
  const problems = [...plan.problems]
  const progress = startProgress(plan, run.sums)
  try {
    for (const planned of plan.logs) {
      const problem = await run.read(planned)
      if (problem !== null) problems.push(problem)
    }
  } finally {
    progress.stop()
  }
  const files = plan.logs.map(({ file, guess }) => ({ path: file.path, ...guessJson(guess) }))
  const agents = [...run.sums.agents.values()].sort(
    (a, b) => b.requests - a.requests || (a.name < b.name ? -1 : 1),
  )
  return { ...run.sums, agents, dryRun: store === null, problems, skipped: plan.skipped, files }
}

/** Batches of records that this process made. The control socket carries their text, which the server checks. */
const madeHere = new WeakSet<object>()

/** Stores batches where the data is. */
export function accessStore(
  data: Pick<StoreAccess, 'byServer' | 'call'>,
  orgId: string,
  siteId: string,
): LogStore {
  return {
    // Each batch waits for the disk once, while the next one is under way. More would cost memory; a server has other
    // requests.
    ...(data.byServer ? {} : { eventsMax: 800 }),
    async find(source) {
      const position = await data.call('import access position', { orgId, siteId, source })
      return position as unknown as FoundSource
    },
    async append(records, access) {
      if (!data.byServer) madeHere.add(records)
      const events = data.byServer ? records.map(({ json }) => json).join('\n') : records
      const judged = data.byServer ? judgedFieldsOf(records) : null
      const params = { orgId, events, judged, access } as unknown as Params
      return (await data.call('import access append', params)) as unknown as Appended
    },
  }
}

/** What the text of an event does not say of its record. Both ends of the control socket are this appliance. */
function judgedFieldsOf(records: readonly EventRecord[]): JudgedFields[] {
  return records.map(({ verdict, judgedBy, observedBy, evidence, network }) => {
    return { verdict, judgedBy, observedBy, evidence, network }
  })
}

async function readPosition({ store }: WorkContext, params: Params): Promise<Json> {
  const key = { orgId: textOf(params, 'orgId'), siteId: textOf(params, 'siteId') }
  const position = await findSource(store, { ...key, source: textOf(params, 'source') })
  return position as unknown as Json
}

async function appendLines({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const orgId = textOf(params, 'orgId')
  const accessLines = params['access'] as unknown as AccessLines
  const { records, positions, rejected } = recordsOf(params['events'])
  const bad = rejected.filter(({ index }) => accessLines.requests[index] !== null).length
  const issues: Appended['issues'] = rejected.slice(0, issuesShown)
  const access = {
    ...accessLines,
    requests: positions.map((position) => accessLines.requests[position]!),
    sums: { ...accessLines.sums, bad: accessLines.sums.bad + bad },
  }
  const judged = params['judged'] as unknown as JudgedFields[] | null
  if (judged !== null)
    for (const [index, record] of records.entries()) Object.assign(record, judged[positions[index]!])
  const batch = {
    orgId,
    keyId: importKeyId,
    door: 'access-log' as const,
    receivedAtMs: clock.now(),
    events: records,
    access,
  }
  const result = await store.events.append(batch)
  for (const { index, member } of result.rejected) {
    const message = `${member} has more distinct values than an organization may store`
    issues.push({ index: positions[index]!, message })
  }
  const answer = result.access!
  const rejectedCount = answer.state === 'stored' ? answer.rejected + bad : answer.rejected
  return { ...answer, rejected: rejectedCount, issues: issues.slice(0, issuesShown) }
}

const issuesShown = 20

function recordsOf(events: unknown): MadeEvents {
  if (madeHere.has(events as object)) {
    const records = events as EventRecord[]
    return { records, positions: [...records.keys()], rejected: [] }
  }
  if (events === '') return { records: [], positions: [], rejected: [] }
  const { records, positions, rejected } = acceptLines(String(events), [])
  const reason = ({ path, message }: Issue): string => `${path} ${message}`
  return {
    records,
    positions,
    rejected: rejected.map(({ index, issues }) => ({ index, message: reason(issues[0]!) })),
  }
}

/** Judges by the versions of the site's robots.txt. */
function robotsOf(data: StoreAccess, siteParams: Params): Promise<MarkRobots | null> {
  return loadRobots(
    async () => {
      const { versions } = (await data.call('site policy list', siteParams)) as unknown as {
        versions: RobotsView[]
      }
      return versions.map(({ version, from }) => ({ version, fromMs: Date.parse(from) }))
    },
    async (version) => {
      const answer = await data.call('site policy text', { ...siteParams, version })
      return (answer as { text: string | null }).text
    },
  )
}

/** One audit entry for the whole import, before its first batch. */
async function beginImport({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const metadata = {
    site: textOf(params, 'site'),
    files: numberOf(params, 'files'),
    file: textOf(params, 'path'),
  }
  const act = { action: 'access_logs.imported', target: org.id, metadata }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, clock.now()))
  return { orgId: org.id }
}

function skippedHint({ skipped }: Plan): { hint?: string } {
  const [first] = skipped
  return first === undefined ? {} : { hint: `${first.path} ${first.message}` }
}

function guessJson({ format, lines, fits, samples }: Guess): { [name: string]: Json } {
  return { format: format.name, lines, fits, samples: samples.map((sample) => ({ ...sample })) }
}

const filesShown = 10

/** What was recognized: each format once, with its three samples. */
function planText({ logs, skipped }: Plan, hasProxies: boolean): string {
  const lines: string[] = []
  for (const name of new Set(logs.map(({ guess }) => guess.format.name))) {
    const formatLogs = logs.filter(({ guess }) => guess.format.name === name)
    const { file, guess } = formatLogs[0]!
    const moreText = formatLogs.length === 1 ? '' : ` and ${formatLogs.length - 1} more`
    lines.push(guessText(`${file.path === '-' ? 'standard input' : file.path}${moreText}`, guess, hasProxies))
  }
  for (const { path, message } of skipped.slice(0, filesShown))
    lines.push(oneLine(`Skipped: ${path} ${message}`))
  if (skipped.length > filesShown) lines.push(`Skipped: ${skipped.length - filesShown} more`)
  return lines.join('\n')
}

/** What was recognized in a file, with its samples. */
export function guessText(path: string, guess: Guess, hasProxies: boolean): string {
  const { format, fits, lines, samples } = guess
  const text = [`${path}: ${format.name}, fits ${fits} of the first ${lines} lines`]
  for (const { timeMs, address, method, path: url, status, bytes, userAgent } of samples) {
    const request = `${method ?? '-'} ${cutChars(url ?? '-', 60)}`
    const size = bytes === null ? '' : ` ${bytes} bytes`
    const agentText = cutChars(userAgent ?? '-', 60)
    text.push(`  ${isoTime(timeMs)}  ${address ?? '-'}  ${request}  ${status ?? '-'}${size}  ${agentText}`)
  }
  const warning = hasProxies ? withoutForwarded(guess) : null
  if (warning !== null) text.push(`Warning: ${warning}`)
  return text.map(oneLine).join('\n')
}

const number = (value: number): string => value.toLocaleString('en-US')

function resultText(result: Result): string {
  const { lines, stored, deduped, people, excluded, bad, sessions, referrals, problems } = result
  const files = result.files.length === 1 ? '1 file' : `${number(result.files.length)} files`
  const agents = result.dryRun
    ? `${number(stored)} by agents`
    : `${number(stored)} stored, ${number(deduped)} already known`
  const otherCounts = `${number(people)} by people, ${number(excluded)} excluded, ${number(bad)} bad`
  const text = [
    `Read ${number(lines)} lines of ${files}: ${agents}, ${otherCounts}.`,
    `Sessions of agents: ${number(sessions)}. People sent by assistants: ${number(referrals)}.`,
  ]
  if (result.agents.length > 0) text.push('', agentTable(result.agents), '')
  if (result.dryRun) text.push('Nothing was stored.')
  for (const { path, line, message } of result.badLines) text.push(oneLine(`  ${path}:${line} ${message}`))
  if (bad > result.badLines.length) text.push('  …')
  for (const { path, message } of problems) text.push(oneLine(`${path} ${message}`))
  return text.join('\n')
}

const agentsShown = 10

/** The most frequent agents. "Contradicted" requests come from elsewhere than its operator says. */
function agentTable(agents: AgentCount[]): string {
  const heading = ['agent', 'operator', 'requests', 'verified', 'contradicted']
  const tableRows = agents
    .slice(0, agentsShown)
    .map(({ name, vendor, requests, verified, contradicted }) => [
      name,
      vendor,
      number(requests),
      number(verified),
      number(contradicted),
    ])
  const moreText = agents.length > agentsShown ? `\n${number(agents.length - agentsShown)} more agents` : ''
  return `${columns(heading, tableRows)}${moreText}`
}

const progressMs = 1_000

/** One line on a terminal, rewritten every second. */
function startProgress(plan: Plan, sums: Sums): { stop(): void } {
  if (!process.stderr.isTTY) return { stop() {} }
  const startedMs = performance.now()
  const bytes = plan.logs.reduce((sum, { file }) => sum + (file.bytes ?? 0), 0)
  const show = (): void => {
    const read = plan.logs.reduce((sum, { log }) => sum + log.readBytes(), 0)
    print(
      `\r\u001b[K${progressText(sums.lines, read, bytes, performance.now() - startedMs)}\n`.slice(0, -1),
      2,
    )
  }
  const timer = setInterval(show, progressMs)
  return {
    stop() {
      clearInterval(timer)
      process.stderr.write('\r\u001b[K')
    },
  }
}

/** Lines, lines per second, the share of the bytes and the time left; a pipe has no share. */
function progressText(lines: number, read: number, bytes: number, elapsedMs: number): string {
  const rate = elapsedMs > 0 ? Math.round((lines * 1_000) / elapsedMs) : 0
  const start = `${number(lines)} lines, ${number(rate)} per second`
  if (bytes === 0 || read === 0) return start
  const share = Math.min(1, read / bytes)
  const leftS = Math.ceil((elapsedMs * (1 - share)) / share / 1_000)
  const remainingText = leftS < 60 ? `${leftS} s` : `${Math.ceil(leftS / 60)} min`
  return `${start}, ${Math.floor(share * 100)} %, ${remainingText} left`
}
