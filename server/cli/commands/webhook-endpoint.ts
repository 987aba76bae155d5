/**
 * `sightglass webhook`, the part about endpoints: adds, lists, pauses, resumes and removes them. The other webhook
 * commands use its helpers.
 */
import { textOf, textOrNull, textsOf, type Params, type Work } from '../../runtime/work.ts'
import {
  createEndpoint,
  deleteEndpoint,
  listEndpoints,
  pauseEndpoint,
  resumeEndpoint,
  rotateEndpointSecret,
  type EndpointServices,
} from '../../webhooks/endpoints/endpoints.ts'
import { dataCommand, requireOrg } from '../data-command.ts'
import { text, textList, toggle } from '../option.ts'
import { orgOption, targetOptions } from '../options.ts'
import { cell, rows, table, type Answer } from '../print.ts'
import { UsageError } from '../../errors.ts'
import type { Invocation, Noun } from '../command.ts'
import type { Json } from '../../../db/contract/store.ts'
import type { Actor } from '../../audit/entry.ts'

export const confirmOption = { yes: { ...toggle('confirm the rotation'), flagOnly: true } } as const

const list = (value: string, help: string) =>
  ({ read: textList, value, default: '', help, adds: true }) as const

export const webhookEndpoint: Noun = {
  group: 'Webhooks',
  commands: [
    dataCommand({
      name: 'webhook add',
      summary: 'add an endpoint for new events and show its secret once',
      arguments: 'URL',
      about: [
        'URL is http or https, file:NAME.ndjson below --sink-dir, syslog+udp://HOST or syslog+tcp://HOST. A private address needs --webhook-allow of the server. A type that no event has yet is accepted with a warning.',
      ],
      examples: ['sightglass webhook add https://siem.example.com/in --type "authz.*" --outcome blocked'],
      options: {
        ...orgOption,
        type: list(
          'TYPE[,TYPE]',
          'event types to send, by default all; authz.* matches every type that begins with authz.',
        ),
        outcome: list('OUTCOME[,OUTCOME]', 'outcomes to send, by default all'),
        class: list('CLASS[,CLASS]', 'agent classes to send, by default all'),
        site: list('ID[,ID]', 'sites whose events to send, by default all'),
        label: text('TEXT', 'purpose of the endpoint, at most 80 characters'),
        'retry-waits': {
          ...text(
            'A,B,…',
            'waits before its retries, such as 60s,5m,1h: at most 8, 24h in total; by default those of the server',
          ),
          flagOnly: true,
        },
        ...targetOptions,
      },
      access: 'create',
      params(invocation) {
        const url = wordOf(invocation, 'a URL', 'sightglass help webhook add')
        const {
          org,
          label,
          type,
          outcome,
          class: classes,
          site,
          'retry-waits': retryWaits,
        } = invocation.values
        const { 'webhook-allow': allow, 'sink-dir': sinkDir } = invocation.values
        const filters = { types: type, outcomes: outcome, classes, sites: site }
        return { org, url, allow, sinkDir, label, ...filters, retryWaits }
      },
      work: inOrg((services, actor, params) =>
        createEndpoint(services, actor, {
          url: textOf(params, 'url'),
          label: textOrNull(params, 'label'),
          types: textsOf(params, 'types'),
          outcomes: textsOf(params, 'outcomes'),
          classes: textsOf(params, 'classes'),
          sites: textsOf(params, 'sites'),
          retryWaits: textOrNull(params, 'retryWaits')?.split(',') ?? null,
        }),
      ),
      print: (answer) =>
        [
          secretText(answer),
          ...rows(answer['warnings']).map(({ message }) => `Warning: ${cell(message)}`),
        ].join('\n'),
    }),
    dataCommand({
      name: 'webhook endpoints',
      summary: 'list the endpoints and their state',
      examples: ['sightglass webhook endpoints --json'],
      options: orgOption,
      access: 'read',
      params: ({ values: { org } }) => ({ org }),
      work: inOrg(async (services, { orgId }) => ({ endpoints: await listEndpoints(services, orgId) })),
      print: ({ endpoints }) =>
        table(
          endpoints,
          'No endpoints. Add one with "sightglass webhook add".',
          ['ID', 'STATUS', 'PENDING', 'DELIVERED', 'DEAD', 'POSITION', 'URL'],
          ({ id, status, pausedReason, pending, delivered, deadLetters, position, url }) => [
            cell(id),
            `${cell(status)}${pausedReason === null ? '' : ` (${cell(pausedReason)})`}`,
            cell(pending),
            cell(delivered),
            cell(deadLetters),
            cell(position),
            cell(url),
          ],
        ),
    }),
    dataCommand({
      name: 'webhook pause',
      summary: 'pause an endpoint; its events wait',
      arguments: 'ENDPOINT_ID',
      examples: ['sightglass webhook pause ep_3q2uVbkz0c5mYw1n8sJx4A'],
      options: orgOption,
      access: 'write',
      params: endpointParams,
      work: inOrg(async (services, actor, params) => ({
        endpoint: await pauseEndpoint(services, actor, textOf(params, 'id')),
      })),
      print: (answer) => `Paused ${endpointIdOf(answer)}. Its events are queued until you resume it.`,
    }),
    dataCommand({
      name: 'webhook resume',
      summary: 'resume a paused endpoint where it stopped',
      arguments: 'ENDPOINT_ID',
      examples: ['sightglass webhook resume ep_3q2uVbkz0c5mYw1n8sJx4A'],
      options: orgOption,
      access: 'write',
      params: endpointParams,
      work: inOrg(async (services, actor, params) => ({
        endpoint: await resumeEndpoint(services, actor, textOf(params, 'id')),
      })),
      print: (answer) => `Resumed ${endpointIdOf(answer)}.`,
    }),
    dataCommand({
      name: 'webhook rotate-secret',
      summary: 'replace the secret of an endpoint; the old one signs too for 24 hours',
      arguments: 'ENDPOINT_ID',
      usage: 'ENDPOINT_ID --yes [--org SLUG|ID]',
      examples: ['sightglass webhook rotate-secret ep_3q2uVbkz0c5mYw1n8sJx4A --yes'],
      options: { ...orgOption, ...confirmOption },
      access: 'write',
      params(invocation) {
        const params = endpointParams(invocation)
        confirmRotation(invocation.values.yes, 'the signing secret of the endpoint')
        return params
      },
      work: inOrg((services, actor, params) => rotateEndpointSecret(services, actor, textOf(params, 'id'))),
      print: secretText,
    }),
    dataCommand({
      name: 'webhook remove',
      summary: 'remove an endpoint; its pending deliveries become dead letters',
      arguments: 'ENDPOINT_ID',
      examples: ['sightglass webhook remove ep_3q2uVbkz0c5mYw1n8sJx4A'],
      options: orgOption,
      access: 'write',
      params: endpointParams,
      work: inOrg(async (services, actor, params) => {
        await deleteEndpoint(services, actor, textOf(params, 'id'))
        return { ok: true, id: textOf(params, 'id') }
      }),
      print: ({ id }) => `Removed the endpoint ${cell(id)}.`,
    }),
  ],
}

function endpointParams(invocation: Invocation<typeof orgOption>) {
  const id = wordOf(invocation, 'the id of an endpoint', 'sightglass webhook endpoints')
  return { org: invocation.values.org, id }
}

function secretText(answer: Answer): string {
  return `${cell(answer['secret'])}\n\nStore the signing secret of ${endpointIdOf(answer)} now: it is not shown again.`
}

type OrgWork = (services: EndpointServices, actor: Actor, params: Params) => Promise<Json>

/** Webhook work runs in one organization, as the actor `cli`. */
export function inOrg(work: OrgWork): Work {
  return async (context, params) => {
    const { id: orgId } = await requireOrg(context.store, textOf(params, 'org'))
    const rules = { allow: textsOf(params, 'allow'), sinkDir: textOrNull(params, 'sinkDir') }
    return work(context.webhooks(rules), { orgId, actor: 'cli' }, params)
  }
}

/** The argument of the command, which it needs. */
export function wordOf({ command, words }: Invocation, argument: string, hint: string): string {
  const word = words[0]
  if (word === undefined) throw new UsageError(`"sightglass ${command.name}" needs ${argument}`, hint)
  return word
}

/** Receivers that do not get the new secret within 24 hours reject every delivery. */
export function confirmRotation(yes: boolean, secret: string): void {
  if (!yes)
    throw new UsageError(
      `this replaces ${secret}; the old one signs for 24 hours more`,
      'add --yes to confirm, then give the receiver the new secret',
    )
}

export function endpointIdOf(answer: Answer): string {
  return cell((answer['endpoint'] as Answer | undefined)?.['id'])
}
