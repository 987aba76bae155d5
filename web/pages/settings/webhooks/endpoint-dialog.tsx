/** Adds or edits an endpoint: URL, label, event filters, batch size and retry waits. */
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Text } from '../../../components/text.tsx'
import { webhookApi, type Endpoint, type EndpointFields, type UnknownType } from '../../../api/webhook-api.ts'
import { Field, FormDialog, textOf } from '../../../components/dialog.tsx'

interface EndpointDialogProps {
  endpoint: Endpoint | null // null: a new one
  onDone: (secret: string | null) => void
  onClose: () => void
}

const batchSizeMax = 100

/** "a, b" or "a b" → a, b */
function listOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((part) => part !== ''))]
}

/** Site IDs may contain spaces. */
function siteList(text: string): string[] {
  return [...new Set(text.split(',').map((part) => part.trim()))].filter((part) => part !== '')
}

function settingsOf(form: FormData): EndpointFields {
  // Not a set: the same wait twice means two retries.
  const waits = textOf(form, 'retryWaits')
    .split(/[\s,]+/)
    .filter((part) => part !== '')
  return {
    url: textOf(form, 'url').trim(),
    label: textOf(form, 'label').trim(),
    types: listOf(textOf(form, 'types')),
    outcomes: listOf(textOf(form, 'outcomes')),
    classes: listOf(textOf(form, 'classes')),
    sites: siteList(textOf(form, 'sites')),
    batchSize: Number(textOf(form, 'batchSize')),
    retryWaits: waits.length === 0 ? null : waits,
  }
}

/** 300 → "5m". */
function waitText(seconds: number): string {
  const units = [
    [3_600, 'h'],
    [60, 'm'],
  ] as const
  const [size, unit] = units.find(([unitSeconds]) => seconds % unitSeconds === 0) ?? [1, 's']
  return `${seconds / size}${unit}`
}

export function EndpointDialog({ endpoint, onDone, onClose }: EndpointDialogProps) {
  const checked = useSignal<{ types: string; unknown: UnknownType[] }>({ types: '', unknown: [] })
  const save = async (form: FormData): Promise<void | 'stay'> => {
    const settings = settingsOf(form)
    const types = settings.types.join()
    if (types !== '' && types !== checked.value.types) {
      checked.value = { types, unknown: await webhookApi.unknownTypes(settings.types) }
      if (checked.value.unknown.length > 0) return 'stay'
    }
    if (endpoint === null) onDone((await webhookApi.createEndpoint(settings)).secret)
    else {
      await webhookApi.changeEndpoint(endpoint.id, settings)
      onDone(null)
    }
  }
  const verb = endpoint === null ? 'Add' : 'Save'
  return (
    <FormDialog
      title={endpoint === null ? 'Add endpoint' : 'Edit endpoint'}
      action={checked.value.unknown.length > 0 ? `${verb} anyway` : endpoint === null ? 'Add endpoint' : verb}
      onSubmit={save}
      onClose={onClose}
    >
      <Field
        name="url"
        label="URL"
        value={endpoint?.url ?? ''}
        required
        autofocus
        hint="http or https, with a public address"
      />
      <Field name="label" label="Label" value={endpoint?.label ?? ''} maxLength={80} hint="Optional" />
      <Field
        name="types"
        label="Types"
        value={(endpoint?.types ?? []).join(', ')}
        hint="Separated by commas, for example authz.evaluated, tool.*. Empty: all."
      />
      <OtherFields endpoint={endpoint} />
      <UnknownTypes
        unknown={checked.value.unknown}
        onUse={() => (checked.value = { types: '', unknown: [] })}
      />
    </FormDialog>
  )
}

function OtherFields({ endpoint }: { endpoint: Endpoint | null }) {
  const joinValues = (values: string[] | undefined): string => (values ?? []).join(', ')
  return (
    <>
      <Field
        name="outcomes"
        label="Outcomes"
        value={joinValues(endpoint?.outcomes)}
        hint="For example blocked, error. Empty: all."
      />
      <Field
        name="classes"
        label="Agent classes"
        value={joinValues(endpoint?.classes)}
        hint="For example crawler. Empty: all."
      />
      <Field
        name="sites"
        label="Sites"
        value={joinValues(endpoint?.sites)}
        hint="Site IDs, separated by commas. Empty: all."
      />
      <Field
        name="batchSize"
        label={`Maximum events per message (1 to ${batchSizeMax})`}
        type="number"
        min={1}
        max={batchSizeMax}
        value={String(endpoint?.batchSize ?? batchSizeMax)}
        required
      />
      <Field
        name="retryWaits"
        label="Retry waits"
        value={(endpoint?.retryWaits ?? []).map(waitText).join(', ')}
        hint="For example 60s, 5m, 1h. At most 8 waits, 24 hours in total. Empty: server default."
      />
    </>
  )
}

interface UnknownTypesProps {
  unknown: UnknownType[]
  onUse: () => void
}

/** A mistyped filter matches nothing, so unknown types are confirmed once, with a suggestion. */
function UnknownTypes({ unknown, onUse }: UnknownTypesProps) {
  const shown = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    // Scrolls to the submit button, so that the warning above it is visible.
    shown.current?.closest('form')?.lastElementChild?.scrollIntoView({ block: 'end' })
  }, [unknown])
  if (unknown.length === 0) return null
  const use = (form: HTMLFormElement | null, type: string, suggestion: string): void => {
    const input = form?.elements.namedItem('types')
    if (!(input instanceof HTMLInputElement)) return
    input.value = listOf(input.value)
      .map((listedType) => (listedType === type ? suggestion : listedType))
      .join(', ')
    onUse()
    input.focus()
  }
  return (
    <div ref={shown} class="confirmation" role="alert">
      <ul>
        {unknown.map(({ type, suggestion }) => (
          <li key={type}>
            No event has the type{' '}
            <b>
              <Text value={type} max={64} mono />
            </b>{' '}
            yet.
            {suggestion !== null && (
              <>
                {' '}
                Did you mean{' '}
                <button
                  type="button"
                  class="button"
                  onClick={(event) => use(event.currentTarget.form, type, suggestion)}
                >
                  <Text value={suggestion} max={64} mono />
                </button>
                ?
              </>
            )}
          </li>
        ))}
      </ul>
    </div>
  )
}
