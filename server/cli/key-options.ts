/** The options of the key verbs: what a key is for, what it may do, and until when. */
import { flag, oneOf, plainText, textList } from './option-values.ts'
import { scopes } from '../identity/keys/keys.ts'
import { option } from './option-form.ts'

export const keyOptions = {
  kind: option({
    ...oneOf('ingest', 'secret', 'publishable'),
    value: 'KIND',
    default: null,
    help: 'ingest, secret or publishable',
    verbs: ['key create', 'key list'],
    neededBy: ['key create'],
  }),
  label: option({
    read: plainText,
    value: 'TEXT',
    default: null,
    help: 'what the key or endpoint is for (at most 80 characters)',
    verbs: ['key create', 'key change', 'webhook add'],
    neededBy: ['key create'],
  }),
  site: option({
    read: textList,
    value: 'ID[,ID]',
    default: '',
    help: 'sites an ingest key may write, or an endpoint hears of; left out: every site',
    verbs: ['key create', 'key change', 'webhook add'],
    adds: true,
  }),
  scope: option({
    read: textList,
    choices: scopes,
    value: 'SCOPE[,SCOPE]',
    default: '',
    help: 'what a secret key may do; left out: everything of its kind',
    verbs: ['key create', 'key change'],
    adds: true,
  }),
  expires: option({
    read: plainText,
    value: 'TIME',
    default: null,
    help: 'when the key ends: 90d, 12h, 2027-01-31 or a full time',
    verbs: ['key create'],
  }),
  'behind-proxy': option({
    read: flag,
    value: null,
    default: 'false',
    help: 'accept browser headers that a relaying proxy leaves on',
    verbs: ['key create', 'key change'],
  }),
  id: option({
    read: plainText,
    value: 'ID',
    default: null,
    help: 'the key to revoke, instead of naming it after the verb',
    verbs: ['key revoke'],
  }),
}
