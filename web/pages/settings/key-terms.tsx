/** What a key may be limited to: sites and a proxy for ingest keys, scopes for secret ones, an end for each. */
import type { Key, KeyKind, KeyWanted } from '../../api.ts'
import { Field, textOf } from './form-dialog.tsx'

const scopes = ['traces:read', 'metrics:read', 'audit:read', 'webhooks:read', 'webhooks:write']

/** `of`: the key whose limits are to be changed. */
export function KeyTermsFields({ kinds, of }: { kinds: KeyKind[]; of?: Key }) {
  return (
    <details open={of !== undefined}>
      <summary>Limits</summary>
      <div class="key-form">
        {kinds.includes('ingest') && (
          <>
            <Field
              name="siteIds"
              label="Sites"
              value={of?.siteIds.join(', ') ?? ''}
              hint="Ids with commas between; empty for every site."
            />
            <label>
              <input type="checkbox" name="behindProxy" defaultChecked={of?.behindProxy ?? false} /> Behind a
              proxy that leaves browser headers on
            </label>
          </>
        )}
        {kinds.includes('secret') && (
          <fieldset class="kind-choice">
            <legend>Scopes of a secret key (none: all of them)</legend>
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
          label="Ends on"
          type="date"
          value={dayOf(of?.expiresAt ?? null)}
          hint="At the end of that day, UTC; empty for never."
        />
      </div>
    </details>
  )
}

function dayOf(expiresAt: string | null): string {
  return expiresAt?.slice(0, 10) ?? ''
}

/** What the form says otherwise than the key; an end on the same day is left to the second. */
export function changeOf(key: Key, form: FormData): Omit<Partial<KeyWanted>, 'kind'> {
  const { siteIds = [], scopes = [], behindProxy = false, expiresAt = null } = termsOf(key.kind, form)
  const label = textOf(form, 'label').trim()
  const isSame = (a: string[], b: string[]) => JSON.stringify(a) === JSON.stringify(b)
  return {
    ...(label !== key.label && { label }),
    ...(!isSame(siteIds, key.siteIds) && { siteIds }),
    ...(!isSame(scopes, key.scopes) && { scopes }),
    ...(behindProxy !== key.behindProxy && { behindProxy }),
    ...(dayOf(expiresAt) !== dayOf(key.expiresAt) && { expiresAt }),
  }
}

/** Scopes and sites only go with their kind of key, whatever the form still holds. */
export function termsOf(kind: KeyKind, form: FormData): Omit<KeyWanted, 'kind' | 'label'> {
  const day = textOf(form, 'expires')
  const siteIds = textOf(form, 'siteIds')
    .split(',')
    .map((id) => id.trim())
    .filter((id) => id !== '')
  return {
    ...(kind === 'ingest' && siteIds.length > 0 ? { siteIds } : {}),
    ...(kind === 'ingest' && form.has('behindProxy') ? { behindProxy: true } : {}),
    ...(kind === 'secret' ? { scopes: form.getAll('scope').map(String) } : {}),
    ...(day === '' ? {} : { expiresAt: `${day}T23:59:59Z` }),
  }
}
