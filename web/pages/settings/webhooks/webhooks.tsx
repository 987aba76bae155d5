/** Settings, Webhooks: endpoints, alert rules, the organization's signing secret and verification code. */
import { useSignal } from '@preact/signals'
import { CodeBlock } from '../../../components/copy.tsx'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { fullTime } from '../../../text/format.ts'
import { mayManage, session } from '../../../app/session.ts'
import { type Endpoint, type SigningSecret, webhookApi } from '../../../api/webhook-api.ts'
import { FormDialog, SecretDialog } from '../../../components/dialog.tsx'
import { healthOf } from '../../webhooks/labels.ts'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { Rules } from './rules.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import { useRecords } from '../../../query/use-query.ts'

export function Webhooks() {
  const {
    data: endpoints,
    error: problem,
    refetch,
  } = useRecords<Endpoint[]>({ key: 'webhook endpoints', fetch: webhookApi.endpoints })
  const editing = useSignal<Endpoint | 'new' | null>(null)
  const deleting = useSignal<Endpoint | null>(null)
  const fresh = useSignal<string | null>(null)
  const allowed = mayManage(session.value)
  return (
    <section class="settings-section">
      <Introduction allowed={allowed} onAdd={() => (editing.value = 'new')} />
      {problem.value && <Problem error={problem.value} onRetry={refetch} />}
      {endpoints.value?.length === 0 && (
        <p class="muted">No endpoints yet. Add one to receive events as webhooks.</p>
      )}
      {endpoints.value && endpoints.value.length > 0 && (
        <EndpointTable
          endpoints={endpoints.value}
          allowed={allowed}
          onEdit={(endpoint) => (editing.value = endpoint)}
          onDelete={(endpoint) => (deleting.value = endpoint)}
        />
      )}
      {endpoints.value && <Rules endpoints={endpoints.value} allowed={allowed} />}
      {allowed && <OrgSecret />}
      <Snippets />
      {editing.value !== null && (
        <EndpointDialog
          endpoint={editing.value === 'new' ? null : editing.value}
          onDone={(secret) => {
            fresh.value = secret
            refetch()
          }}
          onClose={() => (editing.value = null)}
        />
      )}
      {deleting.value && (
        <DeleteDialog endpoint={deleting.value} onDone={refetch} onClose={() => (deleting.value = null)} />
      )}
      {fresh.value !== null && (
        <SecretDialog
          title="Endpoint signing secret"
          label="Signing secret"
          copyLabel="Copy secret"
          secret={fresh.value}
          about="Your receiver needs this secret to verify messages. It is not shown again."
          onClose={() => (fresh.value = null)}
        />
      )}
    </section>
  )
}

function Introduction({ allowed, onAdd }: { allowed: boolean; onAdd: () => void }) {
  return (
    <>
      <p class="about">
        An endpoint receives new events that match its filters, in signed batches. Deliveries are listed on{' '}
        <a href="/webhooks">Webhooks</a>.
      </p>
      {allowed ? (
        <button type="button" class="button primary" aria-haspopup="dialog" onClick={onAdd}>
          Add endpoint
        </button>
      ) : (
        <RoleNote text="Only owners and admins can manage endpoints." />
      )}
    </>
  )
}

interface EndpointTableProps {
  endpoints: Endpoint[]
  allowed: boolean
  onEdit: (endpoint: Endpoint) => void
  onDelete: (endpoint: Endpoint) => void
}

function EndpointTable({ endpoints, allowed, onEdit, onDelete }: EndpointTableProps) {
  const nameOf = ({ label, url }: Endpoint): string => label || url
  return (
    <RecordTable
      label="Endpoints"
      rows={endpoints}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Endpoint', cell: (endpoint) => <Text value={nameOf(endpoint)} max={44} /> },
        { name: 'Receives', cell: (endpoint) => <Text value={filterSentence(endpoint)} max={60} /> },
        {
          name: 'State',
          cell: (endpoint) => {
            const { tone, label } = healthOf(endpoint)
            return <span class={`chip ${tone}`}>{label}</span>
          },
        },
      ]}
      actions={
        allowed
          ? (endpoint) => (
              <>
                <RowButton label="Edit" of={nameOf(endpoint)} onClick={() => onEdit(endpoint)} />
                <RowButton label="Delete" of={nameOf(endpoint)} onClick={() => onDelete(endpoint)} />
              </>
            )
          : null
      }
    />
  )
}

/** "type authz.*, site shop" or "all events". */
function filterSentence({ types, outcomes, classes, sites }: Endpoint): string {
  const part = (name: string, values: string[]): string[] =>
    values.length === 0 ? [] : [`${name} ${values.join(' or ')}`]
  const parts = [
    ...part('type', types),
    ...part('outcome', outcomes),
    ...part('class', classes),
    ...part('site', sites),
  ]
  return parts.length === 0 ? 'all events' : parts.join(', ')
}

interface DeleteDialogProps {
  endpoint: Endpoint
  onDone: () => void
  onClose: () => void
}

function DeleteDialog({ endpoint, onDone, onClose }: DeleteDialogProps) {
  const submit = async (): Promise<void> => {
    await webhookApi.deleteEndpoint(endpoint.id)
    onDone()
  }
  return (
    <FormDialog title="Delete endpoint" action="Delete endpoint" danger onSubmit={submit} onClose={onClose}>
      <p>
        Delete{' '}
        <strong>
          <Text value={endpoint.label || endpoint.url} />
        </strong>
        ?
      </p>
      <p>Pending deliveries become dead letters and its alert rules are deleted. This cannot be undone.</p>
    </FormDialog>
  )
}

function OrgSecret() {
  const signingSecret = useSignal<SigningSecret | null>(null)
  const rotating = useSignal(false)
  const { problem, run } = useTask()
  const show = () => run(async () => void (signingSecret.value = await webhookApi.secret()))
  return (
    <div class="org-secret">
      <h3>Organization signing secret</h3>
      <p>
        Signs test messages and messages that are sent directly to a URL. Each endpoint has its own secret.
      </p>
      {problem.value && <Problem error={problem.value} />}
      {signingSecret.value === null ? (
        <button type="button" class="button" onClick={() => void show()}>
          Show secret
        </button>
      ) : (
        <div class="secret">
          <output class="mono" aria-label="Organization signing secret">
            {signingSecret.value.secret}
          </output>
          <button type="button" class="button" onClick={() => (rotating.value = true)}>
            Rotate secret
          </button>
        </div>
      )}
      {signingSecret.value?.oldSecretUntil != null && (
        <p class="muted">
          Messages are also signed with the previous secret until{' '}
          {fullTime(Date.parse(signingSecret.value.oldSecretUntil))}.
        </p>
      )}
      {rotating.value && (
        <FormDialog
          title="Rotate signing secret"
          action="Rotate secret"
          onSubmit={async () => void (signingSecret.value = await webhookApi.rotateOrgSecret())}
          onClose={() => (rotating.value = false)}
        >
          <p>
            Messages are signed with the old and the new secret for 24 hours. After that, receivers that only
            know the old secret reject every message.
          </p>
        </FormDialog>
      )}
    </div>
  )
}

function Snippets() {
  const { data, error: problem } = useRecords({ key: 'webhook snippets', fetch: webhookApi.snippets })
  const chosen = useSignal('')
  const list = data.value ?? []
  const shown = list.find((snippet) => snippet.language === chosen.value) ?? list[0]
  return (
    <div class="snippets">
      <h3>Signature verification</h3>
      <p>Verify each message before you trust it, with this code or a Standard Webhooks library.</p>
      {problem.value && <Problem error={problem.value} />}
      <div class="snippet-choice" role="group" aria-label="Language">
        {list.map(({ language }) => (
          <button
            type="button"
            key={language}
            class="button choice"
            aria-pressed={shown?.language === language}
            onClick={() => (chosen.value = language)}
          >
            {language}
          </button>
        ))}
      </div>
      {shown && (
        <CodeBlock text={shown.code} label={`Verification code: ${shown.language}`} copyLabel="Copy code" />
      )}
    </div>
  )
}
