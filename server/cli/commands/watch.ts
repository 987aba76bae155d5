/** `sightglass watch`: follows access logs and hands their lines to the appliance, here or on another machine. */
import { resolve } from 'node:path'
import type { Json } from '../../../db/contract/store.ts'
import { readTextFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import type { LogOptions } from '../../access/agent-events.ts'
import { processReader } from '../../access/claims.ts'
import { followLog } from '../../access/follow.ts'
import { httpSink } from '../../access/http-sink.ts'
import type { AccessReceiver, Sender } from '../../access/receiver.ts'
import {
  addSums,
  noLines,
  type LineSums,
  type LogLines,
  type LogStatus,
  type Sink,
} from '../../access/sink.ts'
import { auditEntry } from '../../audit/entry.ts'
import { systemClock } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { importKeyId, newToken } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { serverAccess } from '../../runtime/store-access.ts'
import { shortenWaits } from '../../system/slow-files.ts'
import { watchedPath } from '../../system/watched-path.ts'
import { textOf, textsOf, type Params, type WorkContext } from '../../runtime/work.ts'
import { command, type Noun } from '../command.ts'
import { requireOrg } from '../data-command.ts'
import { applianceAddress } from '../option.ts'
import { accessOptions } from '../access-options.ts'
import { orgOption } from '../options.ts'
import { oneLine, print, printAnswer } from '../print.ts'
import { guessText } from './import-access.ts'

const pathsMax = 100

export const watch: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'watch',
      summary: 'follow access logs of web servers and store the agents in them',
      arguments: 'PATH …',
      argumentsMax: pathsMax,
      about: [
        'Sends each line to the appliance that uses the data folder, or with --to to another one, until SIGTERM or Ctrl-C. Each line is stored once, also across rotation (rename, copytruncate, gzip, zstd), a kill of this program and a restart of the appliance: the position is stored with the lines. The command waits for a file that does not exist yet.',
        'A log that was never read is read from its beginning. Import older rotated files with "import access". --key-file names a file with an ingest key for --to.',
      ],
      examples: [
        'sightglass watch /var/log/nginx/access.log --site shop',
        'sightglass watch /var/log/caddy/access.log --site shop --to https://traces.example.com --key-file key.txt',
      ],
      options: {
        ...accessOptions,
        to: {
          read: applianceAddress,
          value: 'URL',
          default: null,
          help: 'appliance on another machine; needs --key-file with an ingest key',
        },
        ...orgOption,
      },
      work: { begin: beginWatch, position: pollWatch, append: appendWatch, 'warm append': warmWatch },
      async run({ words, values }) {
        if (words.length === 0) throw new UsageError('name a log, such as /var/log/nginx/access.log')
        const siteId = values.site
        if (siteId === '' || siteId.length > limits.idCharsMax)
          throw new UsageError(`--site has 1 to ${limits.idCharsMax} characters`)
        const options: LogOptions = {
          siteId,
          keepQuery: values['keep-query'],
          keepAddresses: values['keep-addresses'],
          trustedProxies: values['trusted-proxy'],
        }
        const paths = [...new Set(words.map((path) => resolve(path)))]
        const to = { url: values.to, keyFile: values['key-file'] }
        const sink =
          to.url === null
            ? socketSink(values['data-dir'], values.org, options, paths)
            : httpSink({ url: to.url, key: readKey(to.keyFile), options, reader: newToken() })
        const watching = {
          paths,
          dataDir: values['data-dir'],
          format: values.format,
          sink,
          json: values.json,
        }
        return await followAll({ ...watching, hasProxies: options.trustedProxies.length > 0 })
      },
    }),
  ],
}

function readKey(path: string | null): string {
  if (path === null)
    throw new UsageError('--to needs --key-file FILE with an ingest key', 'sightglass key create')
  try {
    return readTextFile(path).trim()
  } catch (error) {
    throw new UsageError(`--key-file ${path}: cannot be read (${unreadableReason(error)})`)
  }
}

interface Watching {
  paths: string[]
  dataDir: string
  format: string
  sink: Sink
  json: boolean
  hasProxies: boolean
}

/** Follows every log until a signal, and prints what it understands, problems and at the end the sums. */
async function followAll({ paths, dataDir, format, sink, json, hasProxies }: Watching): Promise<number> {
  const ending = new AbortController()
  const end = (): void => {
    shortenWaits()
    ending.abort()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, end)
  const sums = noLines()
  const progress = startProgress(sums, json)
  const follow = (path: string): Promise<void> =>
    followLog({
      path,
      format,
      sink,
      signal: ending.signal,
      now: systemClock.now,
      watched: watchedPath(path, { dataDir, keyFiles: [] }),
      understood: (file, guess) => progress.print(guessText(file, guess, hasProxies)),
      stored: (lineSums) => addSums(sums, lineSums),
      problem: (message) => progress.print(message === null ? `${path} is read again` : message, true),
    })
  try {
    await Promise.all(paths.map(follow))
  } finally {
    ending.abort()
    progress.stop()
  }
  printAnswer({ json }, { ...sums }, () => sumsText(sums))
  return 0
}

const progressMs = 1_000

/** One line on a terminal, rewritten every second; what else is printed goes above it. */
function startProgress(sums: LineSums, json: boolean) {
  const isShown = process.stderr.isTTY
  const clear = (): void => void (isShown && process.stderr.write('\r\u001b[K'))
  const show = (): void => void process.stderr.write(`\r\u001b[K${oneLine(sumsText(sums))}`)
  const timer = isShown ? setInterval(show, progressMs) : null
  return {
    print(text: string, isProblem = false): void {
      clear()
      print(isProblem ? oneLine(text) : text, isProblem || json ? 2 : 1)
    },
    stop(): void {
      if (timer !== null) clearInterval(timer)
      clear()
    },
  }
}

const number = (value: number): string => value.toLocaleString('en-US')

function sumsText({ lines, stored, deduped, people, excluded, bad }: LineSums): string {
  const agents = `${number(stored)} stored, ${number(deduped)} already known`
  const otherCounts = `${number(people)} by people, ${number(excluded)} excluded, ${number(bad)} bad`
  return `Read ${number(lines)} lines: ${agents}, ${otherCounts}.`
}

/** The appliance of a data folder, through its control socket. It may start later, and be restarted. */
function socketSink(dataDir: string, org: string, options: LogOptions, paths: string[]): Sink {
  const server = serverAccess(dataDir)
  const reader = processReader(process.pid, newToken())
  let pendingOrgId: Promise<string> | null = null
  const begin = async (): Promise<string> => {
    const answer = await server.call('watch begin', { org, site: options.siteId, paths })
    return (answer as { orgId: string }).orgId
  }
  const call = async <T>(step: string, stepParams: Params): Promise<T> => {
    pendingOrgId ??= begin()
    const orgId = await pendingOrgId.catch((error: unknown) => {
      pendingOrgId = null
      throw error
    })
    const callParams = { orgId, reader, options: { ...options }, ...stepParams }
    return (await server.call(`watch ${step}`, callParams)) as T
  }
  return {
    position: (status) => call('position', { status: { ...status } }),
    store: (lines) => call('append', { lines: { ...lines } }),
    warm: async (lines) => void (await call('warm append', { lines: { ...lines } })),
  }
}

/** One audit entry for each start of `watch`. */
async function beginWatch({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const org = await requireOrg(store, textOf(params, 'org'))
  const paths = textsOf(params, 'paths')
  const metadata = { site: textOf(params, 'site'), files: paths.length, file: paths[0] ?? '' }
  const act = { action: 'access_logs.watched', target: org.id, metadata }
  await store.audit.append(auditEntry({ orgId: org.id, actor: 'cli' }, act, clock.now()))
  return { orgId: org.id }
}

function senderOf(params: Params): Sender {
  const options = params['options'] as unknown as LogOptions
  const reader = textOf(params, 'reader')
  return { orgId: textOf(params, 'orgId'), keyId: importKeyId, door: 'access-log', options, reader }
}

function receiverOf({ server }: WorkContext): AccessReceiver {
  if (server !== undefined) return server.accessReceiver
  throw new AppError('unavailable', 'Only a running server reads watched logs.')
}

async function pollWatch(context: WorkContext, params: Params): Promise<Json> {
  const status = params['status'] as unknown as LogStatus
  return { ...(await receiverOf(context).position(senderOf(params), status)) }
}

async function appendWatch(context: WorkContext, params: Params): Promise<Json> {
  const lines = params['lines'] as unknown as LogLines
  return (await receiverOf(context).store(senderOf(params), lines)) as unknown as Json
}

async function warmWatch(context: WorkContext, params: Params): Promise<Json> {
  await receiverOf(context).warm(senderOf(params), params['lines'] as unknown as LogLines)
  return {}
}
