/** The limits of a key as form fields: sites and proxy for ingest keys, scopes for secret keys, and an expiry. */
import type { Key, KeyKind, KeyWanted } from '../../../api/api.ts'
import { isoTime } from '../../../app/clock.ts'
import { dayOf, dayStart, zone } from '../../../app/clock.ts'
import { Field, textOf } from '../../../components/dialog.tsx'

const scopes = ['traces:read', 'metrics:read', 'audit:read', 'webhooks:read', 'webhooks:write']

/** `of`: the key being edited. */
export function KeyLimitFields({ kinds, of }: { kinds: KeyKind[]; of?: Key }) {
  return (
    <details open={of !== undefined}>
      <summary>Limits</summary>
      <div class="dialog-form">
        {kinds.includes('ingest') && (
          <>
            <Field
              name="siteIds"
              label="Sites"
              value={of?.siteIds.join(', ') ?? ''}
              hint="Site IDs, separated by commas. Empty: all sites."
            />
            <label>
              <input type="checkbox" name="behindProxy" defaultChecked={of?.behindProxy ?? false} /> Behind a
              proxy that forwards browser headers
            </label>
          </>
        )}
        {kinds.includes('secret') && (
          <fieldset class="kind-choice">
            <legend>Scopes of a secret key (none selected: all)</legend>
            {scopes.map((scope) => (
              <label>
                <input
                  type="checkbox"
                  name="scope"
                  value={scope}
                  defaultChecked={of?.scopes.includes(scope) ?? false}
                />{' '}
                {scope}
              </label>
            ))}
          </fieldset>
        )}
        <Field
          name="expires"
          label="Expires on"
          type="date"
          value={endDay(of?.expiresAt ?? null)}
          hint={`At the end of that day, ${zone.value}. Empty: never.`}
        />
      </div>
    </details>
  )
}

function endDay(expiresAt: string | null): string {
  return expiresAt === null ? '' : dayOf(Date.parse(expiresAt))
}

/** The last second of a day. An invalid day is sent unchanged, so that the server's error names it. */
function endOf(day: string): string {
  const nextMs = dayStart(day, 1)
  return nextMs === null ? day : isoTime(nextMs - 1_000)
}

/** The fields that differ from the key. An expiry on the same day is unchanged. */
export function changeOf(key: Key, form: FormData): Omit<Partial<KeyWanted>, 'kind'> {
  const { siteIds = [], scopes = [], behindProxy = false, expiresAt = null } = limitsOf(key.kind, form)
  const label = textOf(form, 'label').trim()
  const isSame = (a: string[], b: string[]) => JSON.stringify(a) === JSON.stringify(b)
  return {
    ...(label !== key.label && { label }),
    ...(!isSame(siteIds, key.siteIds) && { siteIds }),
    ...(!isSame(scopes, key.scopes) && { scopes }),
    ...(behindProxy !== key.behindProxy && { behindProxy }),
    ...(endDay(expiresAt) !== endDay(key.expiresAt) && { expiresAt }),
  }
}

/** Sends scopes and sites only for their kind of key, even if hidden fields of the form hold values. */
export function limitsOf(kind: KeyKind, form: FormData): Omit<KeyWanted, 'kind' | 'label'> {
  const day = textOf(form, 'expires')
  const siteIds = textOf(form, 'siteIds')
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  return {
    ...(kind === 'ingest' && siteIds.length > 0 ? { siteIds } : {}),
    ...(kind === 'ingest' && form.has('behindProxy') ? { behindProxy: true } : {}),
    ...(kind === 'secret' ? { scopes: form.getAll('scope').map(String) } : {}),
    ...(day === '' ? {} : { expiresAt: endOf(day) }),
  }
}
