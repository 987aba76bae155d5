/** `sightglass evidence`: shows and replaces what the claims of agents are judged by. */
import { readFileSync } from 'node:fs'
import type { Json, StoredPack } from '../../../db/contract/store.ts'
import { readTextFile, unreadableReason } from '../../../db/rules/regular-files.ts'
import { packLimits } from '../../../sdk/judge/evidence-pack.ts'
import { listsWith } from '../../../sdk/judge/judge.ts'
import { AppError, UsageError } from '../../errors.ts'
import {
  evidenceOf,
  replacePack,
  type EvidenceInForce,
  type ListChange,
  type PackReplaced,
} from '../../evidence/evidence.ts'
import { evidenceView, type EvidenceView, type ListView } from '../../evidence/view.ts'
import { flagOf, textOrNull, type Params, type WorkContext } from '../../runtime/work.ts'
import { systemClock } from '../../clock.ts'
import { command, type Noun } from '../command.ts'
import { dataCommand, withData } from '../data-command.ts'
import { toggle } from '../option.ts'
import { evidenceOptions } from '../access-options.ts'
import { columns, printAnswer, type Answer } from '../print.ts'

export const evidence: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'evidence status',
      summary: 'show age, size and origin of the lists that prove who agents are',
      about: [
        'Operators of agents publish the networks, host names and keys of their agents. A pack of such lists is part of the program, and "evidence update" replaces it.',
      ],
      examples: ['sightglass evidence status'],
      options: evidenceOptions,
      run: (invocation) =>
        withEvidence(invocation, (view) => printAnswer(invocation.values, view, statusText)),
    }),
    command({
      name: 'evidence show',
      summary: 'show the lists of the evidence pack, or those with an address',
      arguments: '[LIST|ADDRESS]',
      examples: [
        'sightglass evidence show',
        'sightglass evidence show gptbot',
        'sightglass evidence show 20.42.10.180',
      ],
      options: evidenceOptions,
      work: { '': readStored },
      run: (invocation) => {
        const [target] = invocation.words
        return withEvidence(invocation, (view, inForce) => {
          if (target === undefined) printAnswer(invocation.values, view, ({ lists }) => listTable(lists))
          else printAnswer(invocation.values, shown(target, view, inForce), shownText)
        })
      },
    }),
    dataCommand({
      name: 'evidence update',
      summary: 'replace the evidence pack',
      arguments: '[FILE|-]',
      usage: 'FILE [--trust] | evidence update --bundled',
      about: [
        'All nodes use the pack at once, without a restart. It must be signed with the release key and no older than the pack in force; --trust stores it anyway. Stored events keep their verdicts.',
      ],
      examples: ['sightglass evidence update evidence.json', 'sightglass evidence update --bundled'],
      options: {
        trust: { ...toggle('store a pack that is unsigned, or older than the one in force'), flagOnly: true },
        bundled: { ...toggle('go back to the pack of this release'), flagOnly: true },
      },
      access: 'create',
      params({ words: [path], values: { trust, bundled } }) {
        if ((path === undefined) !== bundled)
          throw new UsageError(
            '"sightglass evidence update" needs a file or --bundled',
            'sightglass help evidence',
          )
        return { text: path === undefined ? null : readFile(path), trust }
      },
      async work({ store, clock }, params) {
        const packOptions = { text: textOrNull(params, 'text'), trust: flagOf(params, 'trust') }
        return (await replacePack({ store, clock }, 'cli', packOptions)) as unknown as Json
      },
      print: (answer) => replacedText(answer as unknown as PackReplaced),
    }),
  ],
}

/** The stored pack, which the command opens itself: it may have a million networks. */
async function readStored({ store }: WorkContext, _params: Params): Promise<Json> {
  return (await store.evidence.read()) as unknown as Json
}

async function withEvidence(
  invocation: Parameters<typeof withData>[0] & { values: { 'evidence-max-age': number } },
  use: (view: EvidenceView & Answer, inForce: EvidenceInForce) => void,
): Promise<number> {
  const stored = await withData(invocation, 'read', (data) => data.call('evidence show', {}))
  const inForce = await evidenceOf(stored as unknown as StoredPack | null)
  const view = evidenceView(inForce, systemClock.now(), invocation.values['evidence-max-age'])
  use(view as unknown as EvidenceView & Answer, inForce)
  return 0
}

function readFile(path: string): string {
  try {
    return path === '-' ? readFileSync(0, 'utf8') : readTextFile(path, packLimits.bytesMax)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EFBIG')
      throw new AppError('payload_too_large', 'An evidence pack has at most 8 MiB.')
    throw new AppError('not_found', `${path} cannot be read (${unreadableReason(error)}).`)
  }
}

const number = (value: number): string => value.toLocaleString('en-US')

function statusText(view: EvidenceView): string {
  const listsOfKind = (kind: ListView['kind']): ListView[] =>
    view.lists.filter((listView) => listView.kind === kind)
  const origin =
    view.origin === 'bundled' ? 'part of this release' : `stored ${view.storedAt} by ${view.storedBy}`
  const old = view.lists.filter((listView) => listView.old && listView.kind === 'networks').length
  const keys = listsOfKind('keys').length
  const lines = [
    `Evidence pack of ${view.made.slice(0, 10)}, ${origin}, ${view.signed ? 'signed with the release key' : 'not signed'}.`,
    `Digest: ${view.digest}`,
    `${listsOfKind('networks').length} address lists with ${number(view.networks)} networks, ` +
      `${listsOfKind('host names').length} lists of host names, ${keys} key ${keys === 1 ? 'directory' : 'directories'}.`,
    `The oldest list was last seen ${number(view.ageDays)} days ago.`,
  ]
  if (old > 0)
    lines.push(
      `${old} lists are older than ${view.maxAgeDays} days: they contradict no claim. Update the pack.`,
    )
  if (view.problem !== null) lines.push(view.problem)
  return lines.join('\n')
}

function listTable(lists: ListView[]): string {
  const rows = lists.map((listView) => [
    listView.list,
    listView.operator,
    listView.kind,
    number(listView.count),
    listView.published ?? '',
    listView.seen,
    listView.old ? 'old' : '',
  ])
  return columns(['LIST', 'OPERATOR', 'HAS', 'COUNT', 'PUBLISHED', 'SEEN', ''], rows)
}

type Shown =
  | { address: string; found: { list: string; network: string; operator: string; products: string[] }[] }
  | { list: ListView; entries: string[] }

/** A list with its entries, or the lists that contain an address. */
function shown(target: string, view: EvidenceView, { pack, evidence }: EvidenceInForce): Shown & Answer {
  const list = view.lists.find((listView) => listView.list === target)
  if (list !== undefined) {
    const entries =
      pack.lists.find((addressList) => addressList.list === target)?.networks ??
      pack.hosts.find((hostList) => hostList.list === target)?.hostNames ??
      pack.directories
        .find((directory) => directory.url === target)
        ?.keys.map((key) => JSON.stringify(key)) ??
      list.products
    return { list, entries } as unknown as Shown & Answer
  }
  const matches = listsWith(evidence(), target)
  if (matches === null)
    throw new AppError('not_found', `"${target}" is neither an address nor a list of the evidence pack.`, {
      hint: 'sightglass evidence show lists them',
    })
  const listMatches = matches.map(({ list: name, index }) => {
    const { operator, products } = view.lists.find((listView) => listView.list === name)!
    const network = pack.lists.find((addressList) => addressList.list === name)!.networks[index]!
    return { list: name, network, operator, products }
  })
  return { address: target, found: listMatches } as unknown as Shown & Answer
}

function shownText(answer: Shown): string {
  if ('list' in answer) {
    const { list, kind, operator, products, source, published, seen: seenDate } = answer.list
    return [
      `${list}: ${kind} of ${operator}, for ${products.join(', ')}`,
      `Source: ${source}${published === null ? '' : `, published ${published}`}, last seen ${seenDate}`,
      ...answer.entries.map((entry) => `  ${entry}`),
    ].join('\n')
  }
  if (answer.found.length === 0) return `${answer.address} is in no list.`
  return columns(
    ['LIST', 'NETWORK', 'OPERATOR', 'AGENTS'],
    answer.found.map((match) => [match.list, match.network, match.operator, match.products.join(', ')]),
  )
}

function replacedText({ changed, digest, made: packDate, signature, origin, changes }: PackReplaced): string {
  if (!changed) return 'This pack is in force already.'
  const changeText = ({ list, change, networksAdded, networksRemoved }: ListChange): string =>
    `  ${list}: ${change}, +${number(networksAdded)} −${number(networksRemoved)}`
  const packName = origin === 'bundled' ? 'The pack of this release' : `The pack of ${packDate.slice(0, 10)}`
  return [
    `${packName} is in force. ${signature === 'valid' ? 'It is signed with the release key.' : 'It is trusted without a valid signature.'}`,
    `Digest: ${digest}`,
    ...(changes.length === 0 ? ['The lists are the same.'] : changes.map(changeText)),
  ].join('\n')
}
