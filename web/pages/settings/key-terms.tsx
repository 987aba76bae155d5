/** What a new key may be limited to: sites and a proxy for ingest keys, scopes for secret ones, an end for each. */
import type { KeyKind, KeyWanted } from '../../api.ts'
import { Field, textOf } from './form-dialog.tsx'

const scopes = ['traces:read', 'metrics:read', 'audit:read', 'webhooks:read', 'webhooks:write']

export function KeyTermsFields({ kinds }: { kinds: KeyKind[] }) {
  return (
    <details>
      <summary>Limits</summary>
      <div class="key-form">
        {kinds.includes('ingest') && (
          <>
            <Field name="siteIds" label="Sites" hint="Ids with commas between; empty for every site." />
            <label>
              <input type="checkbox" name="behindProxy" /> Behind a proxy that leaves browser headers on
            </label>
          </>
        )}
        {kinds.includes('secret') && (
          <fieldset class="kind-choice">
            <legend>Scopes of a secret key (none: all of them)</legend>
            {scopes.map((scope) => (
              <label>
                <input type="checkbox" name="scope" value={scope} /> {scope}
              </label>
            ))}
          </fieldset>
        )}
        <Field
          name="expires"
          label="Ends on"
          type="date"
          hint="At the end of that day, UTC; empty for never."
        />
      </div>
    </details>
  )
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
