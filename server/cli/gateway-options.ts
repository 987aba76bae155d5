/** The options of what limits the public API and what tells monitoring about it. */
import { option } from './option-form.ts'
import { listenAddress, metricsToken, rateLimit } from './option-values.ts'

const serving = ['serve', 'config'] as const

export const gatewayOptions = {
  'metrics-listen': option({
    read: listenAddress,
    value: 'HOST:PORT',
    default: null,
    help: 'a further address that answers only /metrics, to everybody who reaches it',
    verbs: serving,
  }),
  'metrics-token': option({
    read: metricsToken,
    value: 'TOKEN',
    default: null,
    help: 'opens /metrics on the main address to whoever sends it as Bearer; no spaces, the longer the better',
    verbs: serving,
    secret: true,
  }),
  'rate-limit-gateway': option({
    read: rateLimit,
    value: 'N/s|m|h',
    default: '1200/m',
    help: 'requests of one key or address to the gateway, as many at once; or off',
    verbs: serving,
  }),
  'rate-limit-ingest': option({
    read: rateLimit,
    value: 'N/s|m|h',
    default: 'off',
    help: 'the same for ingest, which the write queue governs anyway',
    verbs: serving,
  }),
}
