/** The one table of options: from it come the flags, their environment twins, the keys of the file and the help. */
import {
  addressRangeList,
  applianceAddress,
  basePath,
  cronPattern,
  flag,
  folderPath,
  hostNameList,
  listenAddress,
  oneOf,
  origin,
  plainText,
  ratePerSecond,
  retrySteps,
  sizeBytes,
  textList,
  wholeNumber,
} from './option-values.ts'
import { carryOptions } from './carry-options.ts'
import { identityOptions } from './identity-options.ts'
import { gatewayOptions } from './gateway-options.ts'
import { keyOptions } from './key-options.ts'
import { operateOptions } from './operate-options.ts'
import { option, type Option } from './option-form.ts'
import { verbNames, type VerbName } from './verb-names.ts'
import { webhookOptions } from './webhook-options.ts'

export { verbNames, type VerbName }
export type { Option }

const serving = ['serve', 'config'] as const
const targeting = ['webhook test', 'webhook add', 'setup'] as const // verbs that check an address
const accountVerbs = verbNames.filter((verb) => verb.startsWith('account ') && verb !== 'account list')
const linking = ['account create', 'account reset-password', 'account invite'] as const // verbs that print links
const webhookVerbNames = verbNames.filter((verb) => verb.startsWith('webhook '))
export const options = {
  listen: option({
    read: listenAddress,
    value: 'HOST:PORT|unix:PATH',
    default: '127.0.0.1:7400',
    help: 'where dashboard and API answer; port 0 picks a free one, unix: a socket for a proxy beside it',
    verbs: [...serving, ...linking, 'demo'],
  }),
  'ingest-listen': option({
    read: listenAddress,
    value: 'HOST:PORT',
    default: null,
    help: 'a second address that answers only ingest, limits and health',
    verbs: serving,
  }),
  'data-dir': option({
    read: folderPath,
    value: 'FOLDER',
    default: './sightglass-data',
    help: 'the one folder that holds everything',
    verbs: 'all',
  }),
  config: option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'a TOML file with any of these options as keys',
    verbs: 'all',
    notInFile: true,
  }),
  'public-url': option({
    read: origin,
    value: 'URL',
    default: null,
    help: 'the address people open, when a proxy stands in front',
    verbs: [...serving, ...linking],
  }),
  'base-path': option({
    read: basePath,
    value: 'PATH',
    default: '',
    help: 'where it lives below a host that others share, such as /sightglass; the proxy leaves it in place',
    verbs: [...serving, ...linking],
  }),
  'allowed-host': option({
    read: hostNameList,
    value: 'NAME[,NAME]',
    default: '',
    help: 'further host names the dashboard answers to',
    verbs: serving,
  }),
  'trusted-proxy': option({
    read: addressRangeList,
    value: 'CIDR[,CIDR]',
    default: '',
    help: 'proxies whose X-Forwarded-For and -Proto are believed',
    verbs: serving,
  }),
  'disk-floor': option({
    read: sizeBytes,
    value: 'SIZE',
    default: '256MiB',
    help: 'ingest stops with 507 when less disk is free',
    verbs: serving,
  }),
  'dispatch-cron': option({
    read: cronPattern,
    value: 'CRON',
    default: '* * * * *',
    help: 'when webhook deliveries go out; a field for seconds may stand first',
    verbs: serving,
  }),
  'webhook-backoff': option({
    read: retrySteps,
    value: 'A,B,C',
    default: '60s,300s,1800s',
    help: 'the waits before the three retries of a delivery',
    verbs: serving,
  }),
  'webhook-allow': option({
    read: addressRangeList,
    value: 'CIDR[,CIDR]',
    default: '',
    help: 'private networks that webhook deliveries may reach',
    verbs: [...serving, ...targeting],
  }),
  'webhook-ca': option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'certificate authorities (PEM) that receivers may use beside the public ones',
    verbs: serving,
  }),
  'sink-dir': option({
    read: folderPath,
    value: 'FOLDER',
    default: null,
    help: 'lets webhook endpoints append to files below this folder',
    verbs: [...serving, 'webhook add', 'setup'],
  }),
  ...webhookOptions,
  ...operateOptions,
  ...identityOptions,
  ...keyOptions,
  ...carryOptions,
  ...gatewayOptions,
  'log-level': option({
    ...oneOf('debug', 'info', 'warn', 'error'),
    value: 'LEVEL',
    default: 'info',
    help: 'debug, info, warn or error',
    verbs: serving,
  }),
  'admin-email': option({
    read: plainText,
    value: 'EMAIL',
    default: null,
    help: 'makes the first owner at start, while there is none',
    verbs: serving,
    environmentOnly: true,
  }),
  'admin-password': option({
    read: plainText,
    value: 'PASSWORD',
    default: null,
    help: "the first owner's password",
    verbs: serving,
    environmentOnly: true,
    secret: true,
  }),
  org: option({
    read: plainText,
    value: 'SLUG|ID',
    default: 'default',
    help: 'the organization, by slug or id',
    verbs: [
      'account create',
      'key create',
      'key list',
      'key revoke',
      'key rotate',
      'key change',
      'account invite',
      'account set-role',
      'account remove',
      'org rename',
      'org delete',
      'org keep',
      'org sign-in-rule',
      'site list',
      'site change',
      ...webhookVerbNames,
      'demo',
      'demo remove',
      'export audit',
      'export traces',
      'export metrics',
      'import',
      'erase',
    ],
  }),
  name: option({
    read: plainText,
    value: 'NAME',
    default: null,
    help: 'what people call the organization or site',
    verbs: ['org create', 'org rename', 'site change'],
    neededBy: ['org create', 'org rename'],
  }),
  slug: option({
    read: plainText,
    value: 'SLUG',
    default: null,
    help: 'its short name for commands; made from the name when left out',
    verbs: ['org create'],
  }),
  email: option({
    read: plainText,
    value: 'EMAIL',
    default: null,
    help: "the account's e-mail address",
    verbs: accountVerbs,
    neededBy: accountVerbs,
  }),
  role: option({
    ...oneOf('owner', 'admin', 'analyst', 'viewer'),
    value: 'ROLE',
    default: null,
    help: 'owner, admin, analyst or viewer',
    verbs: ['account create', 'account invite', 'account set-role'],
    neededBy: ['account create', 'account invite', 'account set-role'],
  }),
  operator: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'may also run the appliance itself (the first owner always may)',
    verbs: ['account create'],
  }),
  'password-stdin': option({
    read: flag,
    value: null,
    default: 'false',
    help: 'read the password from standard input; else a one-time link is printed',
    verbs: ['account create'],
  }),
  payload: option({
    read: plainText,
    value: 'JSON',
    default: '{}',
    help: 'the JSON object to send',
    verbs: ['webhook test'],
  }),
  status: option({
    ...oneOf('pending', 'delivered', 'dead_letter'),
    value: 'STATUS',
    default: null,
    help: 'pending, delivered or dead_letter; left out: all',
    verbs: ['webhook list'],
  }),
  limit: option({
    read: wholeNumber(1, 1_000),
    value: 'N',
    default: '50',
    help: 'how many at most',
    verbs: ['webhook list'],
  }),
  dead: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'all dead letters of the organization',
    verbs: ['webhook replay'],
  }),
  rotate: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'replace the secret; the old one signs too for a day',
    verbs: ['webhook secret'],
  }),
  type: option({
    read: textList,
    value: 'TYPE[,TYPE]',
    default: '',
    help: 'event types to hear of, a trailing .* for all that begin so; left out: every type',
    verbs: ['webhook add'],
    adds: true,
  }),
  outcome: option({
    read: textList,
    value: 'OUTCOME[,OUTCOME]',
    default: '',
    help: 'outcomes to hear of; left out: every outcome',
    verbs: ['webhook add'],
    adds: true,
  }),
  class: option({
    read: textList,
    value: 'CLASS[,CLASS]',
    default: '',
    help: 'agent classes to hear of; left out: every class',
    verbs: ['webhook add'],
    adds: true,
  }),
  live: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'keep sending through the public ingest endpoint until Ctrl-C',
    verbs: ['demo'],
  }),
  events: option({
    read: wholeNumber(100, 5_000_000),
    value: 'COUNT',
    default: '60000',
    help: 'about how many events the 30 days hold',
    verbs: ['demo'],
  }),
  seed: option({
    read: wholeNumber(0, 2 ** 31 - 1),
    value: 'NUMBER',
    default: '1',
    help: 'the same seed makes the same traffic',
    verbs: ['demo'],
  }),
  rate: option({
    read: ratePerSecond,
    value: 'N/s|m|h',
    default: '5/s',
    help: 'how fast --live sends',
    verbs: ['demo'],
  }),
  url: option({
    read: applianceAddress,
    value: 'URL',
    default: null,
    help: 'where --live sends; left out: the server of this data folder',
    verbs: ['demo'],
  }),
  key: option({
    read: plainText,
    value: 'KEY',
    default: null,
    help: 'the ingest key --live uses; left out: it mints one and revokes it at the end',
    verbs: ['demo'],
    secret: true,
  }),
  json: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'answer with one JSON value for scripts',
    verbs: verbNames.filter((verb) => verb !== 'serve'), // its lines on standard output have a form of their own
  }),
  help: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'explain the command',
    verbs: 'all',
    flagOnly: true,
  }),
} satisfies Record<string, Option<unknown>>

export type OptionName = keyof typeof options
export const optionNames = Object.keys(options) as OptionName[]

type ValueOf<N extends OptionName> = (typeof options)[N]['default'] extends null
  ? ReturnType<(typeof options)[N]['read']> | null
  : ReturnType<(typeof options)[N]['read']>

/** The value of every option of the table, typed by how it is read. */
export type OptionValues = { [N in OptionName]: ValueOf<N> }

export function optionOf(name: OptionName): Option<unknown> {
  return options[name]
}

export function optionFits(name: OptionName, verb: VerbName): boolean {
  const { verbs } = optionOf(name)
  // The doctor looks at what serve would be started with, and a service is installed to start it.
  const likeServe = verb === 'doctor' || verb === 'service install'
  return verbs === 'all' || verbs.includes(verb) || (likeServe && verbs.includes('serve'))
}

/** `--data-dir` = `SIGHTGLASS_DATA_DIR`. */
export function environmentTwin(name: string): string {
  return `SIGHTGLASS_${name.toUpperCase().replaceAll('-', '_')}`
}
