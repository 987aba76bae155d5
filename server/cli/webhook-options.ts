/** The options of how webhook deliveries leave the machine, and of what is delivered again. */
import { option } from './option-form.ts'
import { plainText } from './option-values.ts'
import { UsageError } from '../errors.ts'

const serving = ['serve', 'config'] as const

/** `http://[user:password@]host:port`, given back as it is: what the proxy is sent is up to the one who calls. */
export function proxyAddress(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || url.protocol !== 'http:' || url.hostname === '')
    throw new UsageError(
      'a proxy is given like http://proxy.example.com:3128, maybe with user:password@ before the host',
    )
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    throw new UsageError('the address of a proxy ends after host and port')
  return text
}

export const webhookOptions = {
  'webhook-proxy': option({
    read: proxyAddress,
    value: 'URL',
    default: null,
    help: 'the HTTP proxy through which deliveries to http and https go; variables like HTTPS_PROXY are not obeyed',
    verbs: serving,
    secret: true,
  }),
  'retry-waits': option({
    read: plainText,
    value: 'A,B,…',
    default: null,
    help: 'the waits before the retries of this endpoint, like 60s,5m,1h: at most 8, 24 hours in all',
    verbs: ['webhook add'],
    flagOnly: true,
  }),
  from: option({
    read: plainText,
    value: 'PLACE',
    default: null,
    help: 'where a range begins that an endpoint gets again: a position, or a time of arrival',
    verbs: ['webhook replay'],
    flagOnly: true,
  }),
  until: option({
    read: plainText,
    value: 'PLACE',
    default: null,
    help: 'where it ends; left out: where the endpoint is',
    verbs: ['webhook replay'],
    flagOnly: true,
  }),
}
