/** `sightglass copy`: moves all data between a data folder and a database that several nodes share, both ways. */
import { openCopy, openDatabaseAdmin, reopenCopied } from '../../../db/open.ts'
import { auditEntry } from '../../audit/entry.ts'
import { systemClock } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { requireKeys, writeKeys } from '../../operations/copy/keys.ts'
import { openDataFolder } from '../../runtime/open-data-folder.ts'
import { sizeText } from '../../text/text.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { command, type Invocation, type Noun } from '../command.ts'
import { databaseUrl, folderPath, toggle } from '../option.ts'
import { keyRingOf, locationOf, sharedDatabaseOf } from '../options.ts'
import { columns, print, printAnswer } from '../print.ts'
import type { CopyCheck, CopyEnd, CopyStep, CopyVerdict, DatabaseCopy } from '../../../db/contract/copy.ts'

const end = (help: string) => ({
  read: folderOrUrl,
  value: 'FOLDER|URL',
  needed: true as const,
  default: null,
  secret: true as const,
  flagOnly: true as const,
  help,
})

const options = {
  from: end('data folder or database to copy'),
  to: end('empty data folder or database to copy into'),
  finish: {
    ...toggle('wait until nothing uses the source, then complete the copy'),
    flagOnly: true,
  },
} as const

export const copy: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'copy',
      summary: 'move all data to another folder or database, beside a running server',
      about: [
        'Copies events with their arrival numbers and ids, counts, the audit trail with its signatures, people, keys, webhooks with their deliveries, and settings. Run it again after any interruption: it continues.',
        'While a server uses the source, the copy catches up and ends. With --finish it waits for the server to stop, copies the rest and compares both sides. A source that nothing uses is completed at once. From then on servers refuse the source and may use the target.',
        'A copy into a database needs the key ring of its nodes, with the keys of the source (--key-file). A copy into a folder writes the keys there. Exit code 1 when the copy was stopped or the sides differ.',
      ],
      examples: [
        'sightglass copy --from data --to postgres://sightglass@db/sightglass --key-file key-ring',
        'sightglass copy --from data --to postgres://sightglass@db/sightglass --key-file key-ring --finish',
        'sightglass copy --from postgres://sightglass@db/sightglass --to new-data --key-file key-ring --finish',
      ],
      options,
      run: runCopy,
    }),
    command({
      name: 'copy reopen',
      summary: 'use a source again that was copied elsewhere',
      about: [
        'Servers refuse a source after "copy", because events would be stored in two places. This command lifts that, and the audit trail records it. What the target has stored since then is not copied back.',
      ],
      examples: ['sightglass copy reopen --data-dir data --yes'],
      options: { yes: { ...toggle('continue with the source'), flagOnly: true } },
      run: reopen,
    }),
  ],
}

function folderOrUrl(text: string): string {
  return /^\w+:\/\//.test(text) ? databaseUrl(text) : folderPath(text)
}

/** Without password and parameters. */
function endOf(location: string): CopyEnd {
  const url = folderOf(location) === null ? new URL(location) : null
  if (url === null) return { location, name: location }
  const user = url.username === '' ? '' : `${url.username}@`
  return { location, name: `${url.protocol}//${user}${url.host}${url.pathname}` }
}

const folderOf = (location: string): string | null => (/^\w+:\/\//.test(location) ? null : location)

async function runCopy({ values }: Invocation<typeof options>): Promise<number> {
  const from = endOf(values.from)
  const to = endOf(values.to)
  if (from.location === to.location) throw new UsageError('--from and --to are the same')
  const stop = new AbortController()
  endAfterSignals(stop)
  const ring = keyRingOf(values)
  const opened = await openCopy({ from, to, now: systemClock.now(), finish: values.finish })
  const keys = { copy: opened, from: folderOf(from.location), to: folderOf(to.location), ring }
  let last: CopyStep | null
  try {
    requireKeys(keys)
    writeKeys(keys)
    last = await steps(opened, stop.signal)
  } finally {
    await opened.close()
  }
  if (last === null) {
    print(stopped, 2)
    return 1
  }
  const { phase, behind, verdict, usedBy } = last
  const answer = { from: from.name, to: to.name, phase, behind, usedBy, ...verdict }
  printAnswer(values, answer, () => outcomeText(last, from.name, to.name))
  return phase === 'caught_up' || verdict?.equal === true ? 0 : 1
}

const waitMs = 1_000

/** Null when it was stopped. */
async function steps(opened: DatabaseCopy, ending: AbortSignal): Promise<CopyStep | null> {
  const progress = startProgress()
  try {
    while (!ending.aborted) {
      const step = await opened.step()
      if (step.phase === 'done' || step.phase === 'caught_up') return step
      progress.show(step)
      if (step.phase === 'wait') await Bun.sleep(waitMs)
    }
    return null
  } finally {
    progress.end()
  }
}

/** A step takes 0.2 s unless a database does not answer. The end of a process leaves a copy that continues. */
const stopMs = 10_000

function endAfterSignals(stop: AbortController): void {
  const end = () => {
    stop.abort()
    setTimeout(() => {
      print(stopped, 2)
      process.exit(1)
    }, stopMs).unref()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end)
}

const stopped = 'Stopped. Run the same command again to continue.'

/** Of a line of progress where nobody watches. */
const quietMs = 10_000

/** One line that changes on a terminal, otherwise a line every 10 s. */
function startProgress() {
  const { isTTY = false } = process.stderr
  let shownMs = performance.now()
  let stepStart = { key: '', ms: 0 }
  return {
    show(step: CopyStep): void {
      const nowMs = performance.now()
      const key = `${step.phase} ${step.pass}`
      if (stepStart.key !== key) stepStart = { key, ms: nowMs }
      if (!isTTY && nowMs - shownMs < quietMs) return
      shownMs = nowMs
      const text = progressText(step, (nowMs - stepStart.ms) / 1_000)
      if (isTTY) process.stderr.write(`\r\u001b[K${text.slice(0, (process.stderr.columns || 80) - 1)}`)
      else print(text, 2)
    },
    end(): void {
      if (isTTY) process.stderr.write('\r\u001b[K')
    },
  }
}

const phaseNames = { copy: 'Copying', catch_up: 'Catching up', compare: 'Comparing' } as const

function progressText(step: CopyStep, seconds: number): string {
  const { phase, rows, rowsTotal, bytes, behind, usedBy } = step
  if (phase === 'wait') return `Waiting: ${usedBy}. ${count(behind)} events behind. Stop it to finish.`
  if (phase === 'done' || phase === 'caught_up') return ''
  const share = Math.min(1, rows / Math.max(1, rowsTotal))
  const perSecond = rows / Math.max(0.001, seconds)
  const timeLeft = share === 0 ? '' : `, ${durationText((seconds * (1 - share)) / share)} left`
  return (
    `${phaseNames[phase]}: ${count(rows)} of ${count(rowsTotal)} rows (${Math.floor(share * 100)} %), ` +
    `${count(Math.round(perSecond))} rows/s, ${sizeText(Math.round(bytes / Math.max(0.001, seconds)))}/s${timeLeft}`
  )
}

function count(value: number): string {
  return value.toLocaleString('en-US')
}

function durationText(seconds: number): string {
  const whole = Math.ceil(seconds)
  return whole < 120 ? `${whole} s` : `${Math.ceil(whole / 60)} min`
}

function outcomeText({ phase, verdict, behind, usedBy }: CopyStep, from: string, to: string): string {
  if (phase === 'caught_up')
    return [
      `Copied ${from} to ${to}; ${count(behind)} events behind. The source is still in use: ${usedBy}.`,
      'To switch, run the same command with --finish and stop the server while it waits. The rest takes seconds.',
    ].join('\n')
  if (verdict === null) return stopped
  const lines = [verdictTable(verdict), ...verdict.faults]
  if (!verdict.equal)
    return [
      ...lines,
      'The two sides are NOT equal, so nothing was switched. Run the same command again.',
    ].join('\n')
  const start = folderOf(to) === null ? '--database URL --key-file FILE' : `--data-dir ${to}`
  return [
    ...lines,
    `Both sides are equal. The switch is safe: servers now refuse ${from}.`,
    `Start the server on the copy: sightglass serve ${start}`,
  ].join('\n')
}

/** What people know the tables by. The first pattern that matches counts. */
const groups: [name: string, tables: RegExp][] = [
  ['events', /^events$/],
  ['event ids', /^ids$/],
  ['arrival numbers', /^event_org$/],
  ['dictionary terms', /^event_term$/],
  ['index of events', /^event_(segment|posting)/],
  ['counts and sketches', /^(rollup_|event_type_total)/],
  ['audit trail', /^audit_(entry|head|trim)$/],
  ['audit checkpoints', /^audit_checkpoint$/],
  ['deliveries, attempts', /^webhook_(delivery|attempt)$/],
  ['webhooks, alerts', /^webhook_/],
  ['tools, site memory', /^(registry|memory)_/],
  ['ingest counts, samples', /^(ingest_|rejected_)/],
  ['keys, secrets', /^(api_key|store_secret|key_check)$/],
  ['people, settings', /./],
]

function verdictTable({ checks }: CopyVerdict): string {
  const isEqual = ({ source, target }: CopyCheck) =>
    source.rows === target.rows && source.digest === target.digest
  const byGroup = Map.groupBy(checks, ({ name }) => groups.find(([, tables]) => tables.test(name))![0])
  const rows = groups.flatMap(([name]) => {
    const members = byGroup.get(name)
    if (members === undefined) return []
    const sum = (side: 'source' | 'target') =>
      count(members.reduce((total, check) => total + check[side].rows, 0))
    const different = members.filter((check) => !isEqual(check)).map((check) => check.name)
    return [
      [
        name,
        sum('source'),
        sum('target'),
        different.length === 0 ? 'equal' : `DIFFERENT: ${different.join(', ')}`,
      ],
    ]
  })
  return columns(['COMPARED', 'SOURCE', 'TARGET', 'ROWS AND DIGEST'], rows)
}

async function reopen({ values }: Invocation<{ yes: (typeof options)['finish'] }>): Promise<number> {
  const location = locationOf(values)
  const state = await openDatabaseAdmin(location).copyState()
  if (state?.role !== 'source') throw new AppError('conflict', 'This data was not copied elsewhere.')
  if (!values.yes)
    throw new AppError('conflict', `This data was copied to ${state.other}, which may have newer events.`, {
      hint: 'to continue here without them: sightglass copy reopen --yes',
    })
  await reopenCopied(location)
  const shared = sharedDatabaseOf(values)
  const store = await openDataFolder(values['data-dir'], systemClock, { keyRing: keyRingOf(values), shared })
  try {
    const act = { action: 'data.reopened', target: 'data', metadata: { copiedTo: state.other } }
    await store.audit.append(auditEntry({ orgId: applianceOrgId, actor: 'cli' }, act, systemClock.now()))
  } finally {
    await store.close()
  }
  printAnswer(
    values,
    { location: endOf(location).name, copiedTo: state.other },
    () => 'Servers may use this data again.',
  )
  return 0
}
