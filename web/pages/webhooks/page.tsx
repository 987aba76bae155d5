/** The Webhooks page: endpoints with their health, alerts, and the log of deliveries with replay. */
import './page.css'
import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { useRestart } from '../../query/use-query.ts'
import { PageBar } from '../../components/page-frame.tsx'
import { Problem, useTask } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { counted, localSentence } from '../../text/format.ts'
import { refreshNotices, urgent } from '../../app/notices.ts'
import { navigate, query } from '../../app/router.ts'
import { mayManage, session } from '../../app/session.ts'
import { type DeliveryFilter, type Endpoint, type Incident, webhookApi } from '../../api/webhook-api.ts'
import { DeliveryView } from './delivery.tsx'
import { Alerts } from './alerts.tsx'
import { type EndpointAction, Endpoints } from './endpoints.tsx'
import { createWebhooksModel, deliveryFilterOf, type Shown, type WebhooksModel } from './model.ts'
import { RangeDialog, RotateDialog, TestDialog } from './dialogs.tsx'
import { SecretDialog } from '../../components/dialog.tsx'
import { DeliveryLog } from './delivery-log.tsx'

/** The actions of the page, their dialogs and their result message. */
function useActions(model: WebhooksModel) {
  const testUrl = useSignal<string | null>(null)
  const secret = useSignal<{ of: string; secret: string } | null>(null)
  const range = useSignal<Endpoint | null>(null)
  const rotating = useSignal<Endpoint | null>(null)
  const message = useSignal('')
  const task = useTask()
  const run = (work: () => Promise<void>): void => {
    message.value = ''
    void task.run(work).then(model.refresh)
  }
  const act = (action: EndpointAction, endpoint: Endpoint): void => {
    if (action === 'test') run(async () => openDelivery(await webhookApi.testEndpoint(endpoint.id)))
    else if (action === 'range') range.value = endpoint
    else if (action === 'rotate') rotating.value = endpoint
    else run(async () => void (message.value = await applyAction(action, endpoint)))
  }
  const replayDead = (): void => run(async () => void (message.value = await replayAll()))
  const acknowledge = (incident: Incident): void =>
    run(async () => {
      await webhookApi.acknowledge(incident.id)
      await refreshNotices()
      message.value = 'Alert acknowledged.'
    })
  return { testUrl, secret, range, rotating, message, task, act, replayDead, acknowledge }
}

function openDelivery(id: string): void {
  navigate(`/webhooks?delivery=${encodeURIComponent(id)}`)
}

type Actions = ReturnType<typeof useActions>

export default function WebhooksPage() {
  const model = useMemo(() => createWebhooksModel(webhookApi), [])
  const filterKey = useComputed(() => JSON.stringify(deliveryFilterOf(query.value)))
  useRestart(filterKey, (filter) => model.start(JSON.parse(filter) as DeliveryFilter))
  useEffect(() => model.stop, [])
  const actions = useActions(model)
  const may = mayManage(session.value)
  const openTest = (): void => void (actions.testUrl.value = '')
  return (
    <>
      <PageBar title="Webhooks">
        {may && (
          <button type="button" class="button" aria-haspopup="dialog" onClick={openTest}>
            Send test
          </button>
        )}
      </PageBar>
      <div class={model.stale.value ? 'page webhooks stale' : 'page webhooks'} aria-busy={model.stale.value}>
        {model.error.value && <Problem error={model.error.value} onRetry={model.refresh} />}
        {actions.task.problem.value && <Problem error={actions.task.problem.value} />}
        <p class="said muted" role="status">
          {actions.message.value}
        </p>
        <Content model={model} actions={actions} may={may} />
      </div>
      <Dialogs model={model} actions={actions} />
    </>
  )
}

function Content({ model, actions, may }: { model: WebhooksModel; actions: Actions; may: boolean }) {
  const shown = model.shown.value
  const opened = query.value.get('delivery')
  const busy = actions.task.busy.value
  if (opened !== null) {
    const newest = shown?.deliveries.find((delivery) => delivery.id === opened) ?? null
    return <DeliveryView key={opened} id={opened} may={may} newest={newest} onReplayed={model.refresh} />
  }
  if (!shown) return null
  return (
    <>
      <Notices shown={shown} />
      <Endpoints endpoints={shown.endpoints} may={may} busy={busy} onAct={actions.act} />
      <Alerts incidents={shown.incidents} may={may} busy={busy} onAcknowledge={actions.acknowledge} />
      <DeliveryLog shown={shown} hasOlder={model.hasOlder.value} onOlder={() => void model.loadOlder()} />
      {may && <DeadBar shown={shown} busy={busy} onReplay={actions.replayDead} />}
    </>
  )
}

function Dialogs({ model, actions }: { model: WebhooksModel; actions: Actions }) {
  const { testUrl, secret, range, rotating, message } = actions
  const showDelivery = (id: string): void => {
    model.refresh()
    openDelivery(id)
  }
  return (
    <>
      {testUrl.value !== null && (
        <TestDialog url={testUrl.value} onSent={showDelivery} onClose={() => (testUrl.value = null)} />
      )}
      {range.value !== null && (
        <RangeDialog
          endpoint={range.value}
          onDone={() => {
            message.value = 'Replay started. New events are delivered after it finishes.'
            model.refresh()
          }}
          onClose={() => (range.value = null)}
        />
      )}
      {rotating.value !== null && (
        <RotateDialog
          endpoint={rotating.value}
          onRotated={(newSecret) => {
            secret.value = { of: rotating.value?.url ?? '', secret: newSecret }
            model.refresh()
          }}
          onClose={() => (rotating.value = null)}
        />
      )}
      {secret.value !== null && (
        <SecretDialog
          title="New signing secret"
          label="Signing secret"
          copyLabel="Copy secret"
          secret={secret.value.secret}
          about={`For ${secret.value.of}. This secret is not shown again. ${overlap}`}
          onClose={() => (secret.value = null)}
        />
      )}
    </>
  )
}

const overlap = 'Messages are also signed with the old secret for 24 hours.'

async function applyAction(action: 'pause' | 'resume' | 'replay-dead', endpoint: Endpoint): Promise<string> {
  if (action === 'pause') {
    await webhookApi.pause(endpoint.id)
    return 'Endpoint paused. Events are queued until you resume it.'
  }
  if (action === 'resume') {
    await webhookApi.resume(endpoint.id)
    return 'Endpoint resumed. Queued events are delivered first.'
  }
  return replayed(await webhookApi.replayDead(endpoint.id))
}

const replayAll = async (): Promise<string> => replayed(await webhookApi.replayDead(null))
const replayed = (count: number): string => `Replaying ${counted(count, 'dead letter')}.`

function Notices({ shown }: { shown: Shown }) {
  // Alerts have their own table below the notices.
  const listed = urgent(shown.notices).filter(({ code, href }) => code !== 'alert_open' && href === undefined)
  if (listed.length === 0) return null
  return (
    <ul class="panel notices" aria-label="Notices">
      {listed.map((notice) => (
        <li key={notice.message}>
          <Text value={localSentence(notice.message)} max={400} />
        </li>
      ))}
    </ul>
  )
}

function DeadBar({ shown, busy, onReplay }: { shown: Shown; busy: boolean; onReplay: () => void }) {
  const dead = shown.deliveries.some((delivery) => delivery.status === 'dead_letter')
  if (!dead && !shown.endpoints.some((endpoint) => endpoint.deadLetters > 0)) return null
  return (
    <p>
      <button type="button" class="button" aria-disabled={busy} onClick={onReplay}>
        Replay all dead letters
      </button>
    </p>
  )
}
