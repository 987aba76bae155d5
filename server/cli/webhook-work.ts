/** Shared by the webhook commands: work inside one organization, and the confirmation of a rotation. */
import type { Json } from '../../db/contract/store.ts'
import type { Actor } from '../audit/entry.ts'
import { UsageError } from '../errors.ts'
import { textOf, textOrNull, textsOf, type Params, type Work } from '../runtime/work.ts'
import type { EndpointServices } from '../webhooks/endpoints/endpoints.ts'
import type { Invocation } from './command.ts'
import { requireOrg } from './lookup.ts'
import { toggle } from './option.ts'
import { cell, type Answer } from './print.ts'

type OrgWork = (services: EndpointServices, who: Actor, params: Params) => Promise<Json>

/** Webhook work runs in one organization, as the actor `cli`. */
export function inOrg(work: OrgWork): Work {
  return async (context, params) => {
    const { id: orgId } = await requireOrg(context.store, textOf(params, 'org'))
    const rules = { allow: textsOf(params, 'allow'), sinkDir: textOrNull(params, 'sinkDir') }
    return work(context.webhooks(rules), { orgId, actor: 'cli' }, params)
  }
}

/** The argument of the command, which it needs. */
export function wordOf({ command, words }: Invocation, what: string, hint: string): string {
  const word = words[0]
  if (word === undefined) throw new UsageError(`"sightglass ${command.name}" needs ${what}`, hint)
  return word
}

export const confirmOption = { yes: { ...toggle('confirm the rotation'), flagOnly: true } } as const

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
