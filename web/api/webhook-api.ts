/** The calls of the Webhooks page and of Settings → Webhooks. */
import type { BacktestView } from '../../server/webhooks/alerts/backtest.ts'
import type { Notice } from '../../server/webhooks/alerts/alerts.ts'
import type { RequestView, SecretView } from '../../server/webhooks/routes.ts'
import type { AttemptView, IncidentView, RuleView } from '../../server/webhooks/view.ts'
import type { EndpointView } from '../../server/webhooks/endpoints/endpoint-view.ts'
import type { WaitingFor } from '../../server/text/waiting.ts'
import { exchange, get, json, post } from './api.ts'

export type DeliveryStatus = 'pending' | 'delivered' | 'dead_letter'

export interface Delivery {
  id: string
  endpointId: string | null // null: sent to its URL directly
  url: string
  status: DeliveryStatus
  attempts: number
  nextAttemptAt: string | null
  waitingFor: WaitingFor | null
  lastError: string | null
  lastStatus: number | null
  scheduledAt: string
  deliveredAt: string | null
}

export type Attempt = AttemptView

export type Endpoint = EndpointView

export interface EndpointFields {
  url: string
  label: string
  types: string[]
  outcomes: string[]
  classes: string[]
  sites: string[]
  batchSize: number // maximum events per message
  retryWaits: string[] | null // like 60s or 5m
}

/** A type in a filter that no event has. */
export interface UnknownType {
  type: string
  suggestion: string | null
}

export type { Notice }

export type Rule = RuleView
export type RuleKind = Rule['kind']
export type RuleNumbers = Pick<Rule, 'threshold' | 'minutes' | 'eventsMin'>
export type { BacktestView }

/** Of a rule that compares a measure. */
export type MeasureDefinition = { eventsMin: number } & Required<
  Pick<
    Rule,
    | ('filter' | 'measure' | 'of' | 'condition' | 'windowMinutes' | 'forMinutes' | 'keepFiringMinutes')
    | ('noData' | 'groupBy' | 'groupsMax' | 'notifyPending')
  >
>

/** The fields of a rule in a request. */
export type RuleSettings = Partial<
  RuleNumbers & Omit<MeasureDefinition, 'eventsMin'> & { name: string; endpointId: string }
>

export type Incident = IncidentView & { acknowledgedByName: string | null } // null: the account or key is gone

export type SentRequest = RequestView

export type SigningSecret = SecretView

export interface DeliveryFilter {
  status: DeliveryStatus | null
  endpointId: string | null
}

const base = '/api/webhooks'
const deliveryPath = (id: string, ...parts: string[]): string =>
  [base, encodeURIComponent(id), ...parts].join('/')
const endpoint = (id: string, ...parts: string[]): string =>
  [base, 'endpoints', encodeURIComponent(id), ...parts].join('/')
const rule = (id: string): string => `${base}/rules/${encodeURIComponent(id)}`

async function send<T>(method: 'PATCH' | 'DELETE', url: string, body: unknown): Promise<T> {
  const headers = { 'content-type': 'application/json' }
  return json<T>(await exchange(url, { method, headers, body: JSON.stringify(body) }))
}

export const webhookApi = {
  deliveries: (filter: DeliveryFilter, cursor: string | null, signal: AbortSignal) => {
    const params = new URLSearchParams({ limit: '50' })
    if (cursor !== null) params.set('cursor', cursor)
    else {
      if (filter.status !== null) params.set('status', filter.status)
      if (filter.endpointId !== null) params.set('endpointId', filter.endpointId)
    }
    return get<{ deliveries: Delivery[]; nextCursor: string | null }>(`${base}?${params}`, signal)
  },
  delivery: (id: string, signal: AbortSignal) =>
    get<Delivery & { attemptLog: Attempt[] }>(deliveryPath(id), signal),
  /** The signed request as it was sent; for owners and admins. */
  request: (id: string, signal: AbortSignal) => get<SentRequest>(deliveryPath(id, 'request'), signal),
  sendTest: async (url: string, payload: unknown) =>
    (await json<{ deliveryId: string }>(await post(`${base}/test`, { url, payload }))).deliveryId,
  replay: async (id: string) => void (await post(deliveryPath(id, 'replay'), {})),
  replayDead: async (endpointId: string | null) =>
    (
      await json<{ replayed: number }>(
        await post(`${base}/replay-dead`, endpointId === null ? {} : { endpointId }),
      )
    ).replayed,

  endpoints: async (signal?: AbortSignal) =>
    (await get<{ endpoints: Endpoint[] }>(`${base}/endpoints`, signal)).endpoints,
  createEndpoint: async (fields: EndpointFields) =>
    json<{ endpoint: Endpoint; secret: string }>(await post(`${base}/endpoints`, fields)),
  changeEndpoint: (id: string, fields: EndpointFields) => send('PATCH', endpoint(id), fields),
  deleteEndpoint: (id: string) => send('DELETE', endpoint(id), {}),
  pause: async (id: string) => void (await post(endpoint(id, 'pause'), {})),
  resume: async (id: string) => void (await post(endpoint(id, 'resume'), {})),
  /** A sample batch, signed with the endpoint's own secret. */
  testEndpoint: async (id: string) =>
    (await json<{ deliveryId: string }>(await post(endpoint(id, 'test'), {}))).deliveryId,
  unknownTypes: async (types: string[]) => {
    const params = new URLSearchParams(types.map((type) => ['type', type]))
    return (await get<{ unknown: UnknownType[] }>(`${base}/unknown-types?${params}`)).unknown
  },
  rotateSecret: async (id: string) =>
    (await json<{ secret: string }>(await post(endpoint(id, 'rotate-secret'), {}))).secret,
  /** Replays events received in the range; `until` null: up to the endpoint's position. */
  replayRange: async (id: string, from: string, until: string | null) =>
    void (await post(endpoint(id, 'replay'), { from, until })),

  rules: async (signal?: AbortSignal) => (await get<{ rules: Rule[] }>(`${base}/rules`, signal)).rules,
  createRule: async (kind: RuleKind, endpointId: string, settings: RuleSettings) =>
    void (await post(`${base}/rules`, { kind, endpointId, ...settings })),
  changeRule: (id: string, settings: RuleSettings) => send('PATCH', rule(id), settings),
  /** `until` null ends the silence. */
  silenceRule: async (id: string, until: string | null) =>
    void (await post(`${rule(id)}/silence`, { until })),
  backtest: async (definition: RuleSettings, signal: AbortSignal) => {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify(definition), signal }
    return json<BacktestView>(await exchange(`${base}/rules/backtest`, init))
  },
  deleteRule: (id: string) => send('DELETE', rule(id), {}),
  /** Worst first, as many as the server returns. */
  incidents: async (signal?: AbortSignal) =>
    (await get<{ incidents: Incident[] }>(`${base}/incidents`, signal)).incidents,
  acknowledge: async (id: string) =>
    void (await post(`${base}/incidents/${encodeURIComponent(id)}/acknowledge`, {})),

  notices: async (signal?: AbortSignal) =>
    (await get<{ notices: Notice[] }>(`${base}/notices`, signal)).notices,
  secret: () => get<SigningSecret>(`${base}/secret`),
  rotateOrgSecret: async () => json<SigningSecret>(await post(`${base}/secret/rotate`, {})),
  snippets: async (signal?: AbortSignal) =>
    (await get<{ snippets: { language: string; code: string }[] }>(`${base}/snippets`, signal)).snippets,
}
