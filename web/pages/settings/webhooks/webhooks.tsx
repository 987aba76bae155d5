/** Settings → Webhooks: endpoints, rules that speak, the signing secret, and code that verifies a signature. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { CodeBlock } from '../../../components/code-block.tsx'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { Text } from '../../../components/text.tsx'
import { fullTime } from '../../../text/format.ts'
import { mayManage, session } from '../../../app/session.ts'
import { type Endpoint, type SigningSecret, webhookApi } from '../../../api/webhook-api.ts'
import { SecretDialog } from '../../webhooks/secret-dialog.tsx'
import { healthOf } from '../../webhooks/labels.ts'
import { EndpointDialog } from './endpoint-dialog.tsx'
import { FormDialog } from '../../../components/form-dialog.tsx'
import { Rules } from './rules.tsx'

export function Webhooks() {
  const endpoints = useSignal<Endpoint[] | null>(null)
  const editing = useSignal<Endpoint | 'new' | null>(null)
  const removing = useSignal<Endpoint | null>(null)
  const fresh = useSignal<string | null>(null)
  const { problem, run } = useTask()
  const load = () => run(async () => void (endpoints.value = await webhookApi.endpoints()))
  useEffect(() => void load(), [])
  const allowed = mayManage(session.value)
  return (
    <section class="settings-section">
      <p class="about">
        An endpoint hears of every new event that passes its filters, in signed batches. How deliveries go is
        on the page <a href="/webhooks">Webhooks</a>.
      </p>
      {allowed ? (
        <button
          type="button"
          class="button primary"
          aria-haspopup="dialog"
          onClick={() => (editing.value = 'new')}
        >
          Add endpoint
        </button>
      ) : (
        <p class="muted">Endpoints are for owners and admins; your role is {session.value?.role}.</p>
      )}
      {problem.value && <Problem error={problem.value} onRetry={() => void load()} />}
      {endpoints.value?.length === 0 && <p class="muted">There is no endpoint yet.</p>}
      {endpoints.value && endpoints.value.length > 0 && (
        <EndpointTable
          endpoints={endpoints.value}
          allowed={allowed}
          onChange={(endpoint) => (editing.value = endpoint)}
          onRemove={(endpoint) => (removing.value = endpoint)}
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
            void load()
          }}
          onClose={() => (editing.value = null)}
        />
      )}
      {removing.value && (
        <RemoveDialog
          endpoint={removing.value}
          onDone={() => void load()}
          onClose={() => (removing.value = null)}
        />
      )}
      {fresh.value !== null && (
        <SecretDialog
          title="Signing secret of the endpoint"
          secret={fresh.value}
          about="It is shown once. Your receiver verifies with it that a message is from here."
          onClose={() => (fresh.value = null)}
        />
      )}
    </section>
  )
}

interface EndpointTableProps {
  endpoints: Endpoint[]
  allowed: boolean
  onChange: (endpoint: Endpoint) => void
  onRemove: (endpoint: Endpoint) => void
}

function EndpointTable({ endpoints, allowed, onChange, onRemove }: EndpointTableProps) {
  return (
    <div class="panel table-panel" tabIndex={0} role="region" aria-label="Endpoints">
      <table class="key-table">
        <thead>
          <tr>
            <th scope="col">Endpoint</th>
            <th scope="col">Hears of</th>
            <th scope="col">State</th>
            {allowed && (
              <th scope="col">
                <span class="visually-hidden">Change</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {endpoints.map((endpoint) => {
            const health = healthOf(endpoint)
            return (
              <tr key={endpoint.id}>
                <th scope="row">
                  <Text value={endpoint.label || endpoint.url} max={44} />
                </th>
                <td>
                  <Text value={filterSentence(endpoint)} max={60} />
                </td>
                <td>
                  <span class={`chip ${health.tone}`}>{health.word}</span>
                </td>
                {allowed && (
                  <td class="actions">
                    <button type="button" class="button" onClick={() => onChange(endpoint)}>
                      Change<span class="visually-hidden"> {endpoint.label || endpoint.url}</span>
                    </button>{' '}
                    <button type="button" class="button" onClick={() => onRemove(endpoint)}>
                      Remove<span class="visually-hidden"> {endpoint.label || endpoint.url}</span>
                    </button>
                  </td>
                )}
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

/** "type authz.*, site shop" or "every event". */
export function filterSentence({ types, outcomes, classes, sites }: Endpoint): string {
  const part = (word: string, values: string[]): string[] =>
    values.length === 0 ? [] : [`${word} ${values.join(' or ')}`]
  const parts = [
    ...part('type', types),
    ...part('outcome', outcomes),
    ...part('class', classes),
    ...part('site', sites),
  ]
  return parts.length === 0 ? 'every event' : parts.join(', ')
}

interface RemoveDialogProps {
  endpoint: Endpoint
  onDone: () => void
  onClose: () => void
}

function RemoveDialog({ endpoint, onDone, onClose }: RemoveDialogProps) {
  const remove = async (): Promise<void> => {
    await webhookApi.deleteEndpoint(endpoint.id)
    onDone()
  }
  return (
    <FormDialog title="Remove endpoint" action="Remove endpoint" danger onSubmit={remove} onClose={onClose}>
      <p>
        Remove{' '}
        <strong>
          <Text value={endpoint.label || endpoint.url} />
        </strong>
        ?
      </p>
      <p>What waits for it becomes a dead letter, and its rules go. This cannot be undone.</p>
    </FormDialog>
  )
}

function OrgSecret() {
  const known = useSignal<SigningSecret | null>(null)
  const rotating = useSignal(false)
  const { problem, run } = useTask()
  const show = () => run(async () => void (known.value = await webhookApi.secret()))
  return (
    <div class="org-secret">
      <h3>Signing secret of the organization</h3>
      <p>It signs tests and whatever is sent to a URL directly. Each endpoint has its own.</p>
      {problem.value && <Problem error={problem.value} />}
      {known.value === null ? (
        <button type="button" class="button" onClick={() => void show()}>
          Show secret
        </button>
      ) : (
        <div class="secret">
          <output class="mono" aria-label="Signing secret of the organization">
            {known.value.secret}
          </output>
          <button type="button" class="button" onClick={() => (rotating.value = true)}>
            Rotate
          </button>
        </div>
      )}
      {known.value?.oldSecretUntil != null && (
        <p class="muted">
          The one before signs too until {fullTime(Date.parse(known.value.oldSecretUntil))}.
        </p>
      )}
      {rotating.value && (
        <FormDialog
          title="Rotate the signing secret"
          action="Rotate"
          onSubmit={async () => void (known.value = await webhookApi.rotateOrgSecret())}
          onClose={() => (rotating.value = false)}
        >
          <p>
            A new secret is made. Messages are signed with both for 24 hours, so that receivers can change
            over.
          </p>
        </FormDialog>
      )}
    </div>
  )
}

function Snippets() {
  const list = useSignal<{ language: string; code: string }[]>([])
  const chosen = useSignal('')
  const { problem, run } = useTask()
  useEffect(() => void run(async () => void (list.value = await webhookApi.snippets())), [])
  const shown = list.value.find((snippet) => snippet.language === chosen.value) ?? list.value[0]
  return (
    <div class="snippets">
      <h3>Verify a signature</h3>
      <p>Check every message before you trust it. This code does; libraries for Standard Webhooks do too.</p>
      {problem.value && <Problem error={problem.value} />}
      <div class="snippet-choice" role="group" aria-label="Language">
        {list.value.map(({ language }) => (
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
        <CodeBlock text={shown.code} label={`Verifying in ${shown.language}`} copyLabel="Copy code" />
      )}
    </div>
  )
}
