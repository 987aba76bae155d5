/** Adding an endpoint or changing one: where it is, what it is called, which events it hears of. */
import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { Text } from '../../../components/text.tsx'
import {
  webhookApi,
  type Endpoint,
  type EndpointMembers,
  type UnknownType,
} from '../../../api/webhook-api.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'

interface EndpointDialogProps {
  endpoint: Endpoint | null // null: a new one
  onDone: (secret: string | null) => void
  onClose: () => void
}

const batchSizeMax = 100

/** "a, b" or "a b" → a, b */
export function listOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((part) => part !== ''))]
}

/** Site ids may hold spaces. */
function siteList(text: string): string[] {
  return [...new Set(text.split(',').map((part) => part.trim()))].filter((part) => part !== '')
}

function membersOf(form: FormData): EndpointMembers {
  // A wait given twice is two waits.
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
  const [size, unit] = units.find(([each]) => seconds % each === 0) ?? [1, 's']
  return `${seconds / size}${unit}`
}

export function EndpointDialog({ endpoint, onDone, onClose }: EndpointDialogProps) {
  const asked = useSignal<{ types: string; unknown: UnknownType[] }>({ types: '', unknown: [] })
  const save = async (form: FormData): Promise<void | 'stay'> => {
    const members = membersOf(form)
    const types = members.types.join()
    if (types !== '' && types !== asked.value.types) {
      asked.value = { types, unknown: await webhookApi.unknownTypes(members.types) }
      if (asked.value.unknown.length > 0) return 'stay'
    }
    if (endpoint === null) onDone((await webhookApi.createEndpoint(members)).secret)
    else {
      await webhookApi.changeEndpoint(endpoint.id, members)
      onDone(null)
    }
  }
  const verb = endpoint === null ? 'Add' : 'Save'
  return (
    <FormDialog
      title={endpoint === null ? 'Add endpoint' : 'Change endpoint'}
      action={asked.value.unknown.length > 0 ? `${verb} anyway` : endpoint === null ? 'Add endpoint' : verb}
      onSubmit={save}
      onClose={onClose}
    >
      <Field
        name="url"
        label="URL"
        value={endpoint?.url ?? ''}
        required
        autofocus
        hint="http or https, at a public address"
      />
      <Field
        name="label"
        label="Label"
        value={endpoint?.label ?? ''}
        maxLength={80}
        hint="What people call it; may be empty"
      />
      <Field
        name="types"
        label="Types"
        value={(endpoint?.types ?? []).join(', ')}
        hint="Such as authz.evaluated or tool.*, separated by commas; empty for all"
      />
      <OtherFields endpoint={endpoint} />
      <UnknownTypes unknown={asked.value.unknown} onUse={() => (asked.value = { types: '', unknown: [] })} />
    </FormDialog>
  )
}

function OtherFields({ endpoint }: { endpoint: Endpoint | null }) {
  const of = (values: string[] | undefined): string => (values ?? []).join(', ')
  return (
    <>
      <Field
        name="outcomes"
        label="Outcomes"
        value={of(endpoint?.outcomes)}
        hint="Such as blocked, error; empty for all"
      />
      <Field
        name="classes"
        label="Agent classes"
        value={of(endpoint?.classes)}
        hint="Such as crawler; empty for all"
      />
      <Field
        name="sites"
        label="Sites"
        value={of(endpoint?.sites)}
        hint="Site ids, separated by commas; empty for all"
      />
      <Field
        name="batchSize"
        label="Events in a message"
        type="number"
        min={1}
        max={batchSizeMax}
        value={String(endpoint?.batchSize ?? batchSizeMax)}
        required
        hint="At most so many; 100 or fewer"
      />
      <Field
        name="retryWaits"
        label="Retry waits"
        value={(endpoint?.retryWaits ?? []).map(waitText).join(', ')}
        hint="Such as 60s, 5m, 1h: at most 8, 24 hours in all. Empty for the three waits of the server"
      />
    </>
  )
}

interface UnknownTypesProps {
  unknown: UnknownType[]
  onUse: () => void
}

/** A typing error in a filter costs every event, without a word: asked about once, with what was probably meant. */
function UnknownTypes({ unknown, onUse }: UnknownTypesProps) {
  const shown = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    // Down to the button that adds it anyway: what is asked must be seen.
    shown.current?.closest('form')?.lastElementChild?.scrollIntoView({ block: 'end' })
  }, [unknown])
  if (unknown.length === 0) return null
  const use = (form: HTMLFormElement | null, type: string, suggestion: string): void => {
    const input = form?.elements.namedItem('types')
    if (!(input instanceof HTMLInputElement)) return
    input.value = listOf(input.value)
      .map((each) => (each === type ? suggestion : each))
      .join(', ')
    onUse()
    input.focus()
  }
  return (
    <div ref={shown} class="asked" role="alert">
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
