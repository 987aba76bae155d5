/** `sightglass erase`: erases the events of a session or a subject, and lists what it cannot reach. */
import type { Json } from '../../../db/contract/store.ts'
import { UsageError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { beyondErasure, eraseAll, type Erasure } from '../../operations/retention/erasures.ts'
import { textOf } from '../../runtime/work.ts'
import type { Noun } from '../command.ts'
import { dataCommand, requireOrg } from '../data-command.ts'
import { text, toggle } from '../option.ts'
import { orgOption } from '../options.ts'

export const erase: Noun = {
  group: 'Data',
  commands: [
    dataCommand({
      name: 'erase',
      summary: 'erase the events of a session or a subject for good',
      usage: '--session ID --yes [--org SLUG|ID] | erase --subject TEXT --yes [--org SLUG|ID]',
      about: [
        'Erases the matching events, their counts, and their copies in webhook deliveries and samples of rejected requests. Sending an erased event again counts as deduped. The audit trail records the erasure with a keyed hash of the value.',
        'It does not reach events that arrive after the start, backups, data that webhooks, sinks or exports sent elsewhere, and counts of hours past retention.',
      ],
      examples: [
        'sightglass erase --session sess_1 --yes',
        'sightglass erase --org acme --subject "mailto:ann@example.com" --yes --json',
      ],
      options: {
        ...orgOption,
        session: { ...text('ID', 'session to erase'), flagOnly: true },
        subject: { ...text('TEXT', 'verified subject to erase'), flagOnly: true },
        yes: { ...toggle('confirm the erasure'), flagOnly: true },
      },
      access: 'write',
      params({ values: { org, session, subject, yes } }) {
        const { kind, value } = erasureOf(session, subject, yes)
        return { org, kind, value }
      },
      async work({ store, clock }, params) {
        const kind = textOf(params, 'kind')
        if (kind !== 'session' && kind !== 'subject') throw new UsageError('kind must be session or subject')
        const org = await requireOrg(store, textOf(params, 'org'))
        const actor = { orgId: org.id, actor: 'cli' }
        const id = newId('era')
        const run = { id, node: `the command line (${id})` }
        const erased = await eraseAll(
          { store, clock },
          actor,
          { kind, value: textOf(params, 'value') },
          { run },
        )
        return { orgId: org.id, orgSlug: org.slug, by: kind, ...erased, beyond: [...beyondErasure] }
      },
      print: ({ orgSlug, by: erasureKind, events, deliveries, samples, logEmptied, beyond }) =>
        [
          `Erased ${counted(events, 'event')} of this ${erasureKind} in ${orgSlug}.`,
          `Cleared copies: ${counted(deliveries, 'webhook delivery', 'webhook deliveries')}, ` +
            `${counted(samples, 'sample')} of rejected requests.`,
          ...(logEmptied === true
            ? []
            : ['Files of the database still hold copies; a running server removes them within a minute.']),
          'Out of reach:',
          ...(Array.isArray(beyond) ? beyond : []).map((place) => `  ${String(place)}`),
        ].join('\n'),
    }),
  ],
}

function erasureOf(session: string | null, subject: string | null, yes: boolean): Erasure {
  const hint = 'sightglass help erase'
  if ((session === null) === (subject === null))
    throw new UsageError('"sightglass erase" needs either --session or --subject', hint)
  const erasure: Erasure =
    session === null ? { kind: 'subject', value: subject ?? '' } : { kind: 'session', value: session }
  if (erasure.value === '') throw new UsageError(`--${erasure.kind} must not be empty`, hint)
  if (!yes) throw new UsageError('an erasure cannot be undone; add --yes to confirm it', hint)
  return erasure
}

function counted(value: Json | undefined, singular: string, plural = `${singular}s`): string {
  return `${Number(value).toLocaleString('en-US')} ${value === 1 ? singular : plural}`
}
