/** Adding an endpoint or changing one: where it is, what it is called, which events it hears of. */
import { webhookApi, type Endpoint, type EndpointMembers } from '../../webhook-api.ts'
import { Field, FormDialog, textOf } from './form-dialog.tsx'

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
  return {
    url: textOf(form, 'url').trim(),
    label: textOf(form, 'label').trim(),
    types: listOf(textOf(form, 'types')),
    outcomes: listOf(textOf(form, 'outcomes')),
    classes: listOf(textOf(form, 'classes')),
    sites: siteList(textOf(form, 'sites')),
    batchSize: Number(textOf(form, 'batchSize')),
  }
}

export function EndpointDialog({ endpoint, onDone, onClose }: EndpointDialogProps) {
  const save = async (form: FormData): Promise<void> => {
    const members = membersOf(form)
    if (endpoint === null) onDone((await webhookApi.createEndpoint(members)).secret)
    else {
      await webhookApi.changeEndpoint(endpoint.id, members)
      onDone(null)
    }
  }
  const of = (values: string[] | undefined): string => (values ?? []).join(', ')
  return (
    <FormDialog
      title={endpoint === null ? 'Add endpoint' : 'Change endpoint'}
      action={endpoint === null ? 'Add endpoint' : 'Save'}
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
        value={of(endpoint?.types)}
        hint="Such as authz.evaluated or tool.*, separated by commas; empty for all"
      />
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
    </FormDialog>
  )
}
