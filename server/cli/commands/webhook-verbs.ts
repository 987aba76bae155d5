/** The webhook verbs: their parameters out of the options, and their answers as text for people. */
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import { cell, minute, rows, type Answer, type DataVerb } from './data-verb.ts'
import type { Params } from '../../runtime/params.ts'
import { columns } from '../print.ts'

/** The word behind the verb, which every one of these needs. */
function wordOf({ verb, words }: Invocation, what: string, hint: string): string {
  const word = words[0]
  if (word === undefined) throw new UsageError(`"sightglass ${verb}" needs ${what}`, hint)
  return word
}

const ofEndpoint = (invocation: Invocation): Params => ({
  org: invocation.values.org,
  id: wordOf(invocation, 'the id of an endpoint', 'sightglass webhook endpoints'),
})

/** A server that holds the folder goes by its own rules; these are for work done without one. */
const withTarget = (invocation: Invocation): Params => ({
  org: invocation.values.org,
  url: wordOf(invocation, 'a URL', `sightglass help ${invocation.verb}`),
  allow: invocation.values['webhook-allow'],
  sinkDir: invocation.values['sink-dir'],
})

const endpointOf = (answer: Answer) => rows([answer['endpoint'] ?? {}])[0] ?? {}
const secretText = (answer: Answer) =>
  `${cell(answer['secret'])}\n\nThis is the signing secret of ${cell(endpointOf(answer)['id'])}. It is not shown again.`

const warningLines = ({ warnings }: Answer) =>
  rows(warnings)
    .map(({ message }) => `\nwarning: ${cell(message)}`)
    .join('')

/** A new secret makes receivers fail that do not get it within a day. */
function meant(invocation: Invocation, what: string): void {
  if (!invocation.values.yes) {
    throw new UsageError(
      `rotating replaces ${what}; it signs for one more day`,
      'say --yes if you mean it, and give the receiver the new secret',
    )
  }
}

export const webhookVerbs = {
  'webhook secret': {
    writes: true,
    params: (invocation) => {
      const { org, rotate } = invocation.values
      if (rotate) meant(invocation, 'the signing secret of the organization')
      return { org, rotate }
    },
    text: ({ secret, oldSecretUntil }) =>
      oldSecretUntil === null
        ? cell(secret)
        : `${cell(secret)}\n\nThe secret before it signs too until ${minute(oldSecretUntil)} UTC.`,
  },
  'webhook test': {
    writes: true,
    params: (invocation) => {
      const word = wordOf(invocation, 'a URL or the id of an endpoint', 'sightglass help webhook test')
      const { org, payload } = invocation.values
      if (!word.startsWith('ep_')) return { ...withTarget(invocation), payload }
      return { org, endpointId: word, allow: [], sinkDir: null }
    },
    text: ({ deliveryId }) => `Scheduled ${cell(deliveryId)}. A running server sends it within a second.`,
  },
  'webhook list': {
    writes: false,
    params: ({ values: { org, status, limit } }) => ({ org, status, limit }),
    text: ({ deliveries }) =>
      columns(
        ['ID', 'STATUS', 'ATTEMPTS', 'SCHEDULED', 'NEXT', 'URL', 'LAST ERROR'],
        rows(deliveries).map((delivery) => [
          cell(delivery['id']),
          cell(delivery['status']),
          cell(delivery['attempts']),
          minute(delivery['scheduledAt']),
          minute(delivery['nextAttemptAt']),
          cell(delivery['url']),
          cell(delivery['lastError']),
        ]),
      ),
  },
  'webhook show': {
    writes: false,
    params: (invocation) => ({
      org: invocation.values.org,
      id: wordOf(invocation, 'the id of a delivery', 'sightglass webhook list'),
    }),
    text: (answer) => JSON.stringify(answer, null, 2),
  },
  'webhook replay': {
    writes: true,
    params: ({ values: { org, dead, from, until }, words }) => ({
      ...{ org, dead, from, until },
      id: words[0] ?? null,
    }),
    text: (answer) =>
      'endpoint' in answer
        ? `${cell(endpointOf(answer)['id'])} gets the range again. A running server begins within a second.`
        : `Scheduled ${cell(answer['replayed'])} again. A running server sends them within a second.`,
  },
  'webhook add': {
    writes: true,
    params: (invocation) => {
      const { label, type, outcome, class: classes, site } = invocation.values
      const filters = { types: type, outcomes: outcome, classes, sites: site }
      return { ...withTarget(invocation), label, ...filters, retryWaits: invocation.values['retry-waits'] }
    },
    text: (answer) => `${secretText(answer)}${warningLines(answer)}`,
  },
  'webhook endpoints': {
    writes: false,
    params: ({ values: { org } }) => ({ org }),
    text: ({ endpoints }) =>
      columns(
        ['ID', 'STATUS', 'PENDING', 'DELIVERED', 'DEAD', 'POSITION', 'URL'],
        rows(endpoints).map((endpoint) => [
          cell(endpoint['id']),
          `${cell(endpoint['status'])}${endpoint['pausedReason'] === null ? '' : ` (${cell(endpoint['pausedReason'])})`}`,
          cell(endpoint['pending']),
          cell(endpoint['delivered']),
          cell(endpoint['deadLetters']),
          cell(endpoint['position']),
          cell(endpoint['url']),
        ]),
      ),
  },
  'webhook pause': {
    writes: true,
    params: ofEndpoint,
    text: (answer) =>
      `Paused ${cell(endpointOf(answer)['id'])}; nothing is lost, and resuming goes on from here.`,
  },
  'webhook resume': {
    writes: true,
    params: ofEndpoint,
    text: (answer) => `Resumed ${cell(endpointOf(answer)['id'])}.`,
  },
  'webhook rotate-secret': {
    writes: true,
    params: (invocation) => {
      const of = ofEndpoint(invocation)
      meant(invocation, 'the signing secret of the endpoint')
      return of
    },
    text: secretText,
  },
  'webhook remove': {
    writes: true,
    params: ofEndpoint,
    text: ({ id }) => `Removed the endpoint ${cell(id)}.`,
  },
} satisfies { [verb: string]: DataVerb }
