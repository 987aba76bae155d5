/** `sightglass erase`: takes the events of a session or a subject out for good, and says what it cannot reach. */
import type { Json } from '../../../db/contract/store.ts'
import type { Invocation } from '../config.ts'
import { UsageError } from '../../errors.ts'
import { beyondErasure, eraseAll, type Erasure } from '../../operations/retention/erase-all.ts'
import type { DataVerb } from './data-verb.ts'
import { requireOrg } from './org.ts'
import { textOf, type Params } from '../../runtime/params.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export async function erase({ store, clock }: VerbContext, params: Params): Promise<Json> {
  const kind = textOf(params, 'kind')
  if (kind !== 'session' && kind !== 'subject') throw new UsageError('kind must be session or subject')
  const org = await requireOrg(store, textOf(params, 'org'))
  const actor = { orgId: org.id, actor: 'cli' }
  const erased = await eraseAll({ store, clock }, actor, { kind, value: textOf(params, 'value') })
  return { orgId: org.id, orgSlug: org.slug, by: kind, ...erased, beyond: [...beyondErasure] }
}

export const eraseVerb: DataVerb = {
  writes: true,
  params: (invocation) => {
    const { kind, value } = erasureOf(invocation)
    return { org: invocation.values.org, kind, value }
  },
  text: ({ orgSlug, by, events, deliveries, samples, logEmptied, beyond }) =>
    [
      `Erased ${counted(events, 'event')} of this ${by} from ${orgSlug}, for good.`,
      `Copies cleared: ${counted(deliveries, 'webhook delivery', 'webhook deliveries')}, ` +
        `${counted(samples, 'sample')} of refused requests.`,
      ...(logEmptied === true
        ? []
        : ['The write-ahead log could not be emptied yet: a running server does that within a minute.']),
      'Out of reach:',
      ...(Array.isArray(beyond) ? beyond : []).map((each) => `  ${String(each)}`),
    ].join('\n'),
}

function erasureOf({ values: { session, subject, yes } }: Invocation): Erasure {
  const hint = 'sightglass help erase'
  if ((session === null) === (subject === null))
    throw new UsageError('"sightglass erase" needs --session or --subject, one of them', hint)
  const erasure: Erasure =
    session === null ? { kind: 'subject', value: subject ?? '' } : { kind: 'session', value: session }
  if (erasure.value === '') throw new UsageError(`--${erasure.kind} must not be empty`, hint)
  if (!yes) throw new UsageError('erasing cannot be taken back: say --yes if you mean it', hint)
  return erasure
}

function counted(value: Json | undefined, one: string, many = `${one}s`): string {
  return `${Number(value).toLocaleString('en-US')} ${value === 1 ? one : many}`
}
