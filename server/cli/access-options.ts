/** The options of what reads access logs: the server, `import access` and `watch`. */
import { syslogRules } from '../access/syslog.ts'
import { watchRules } from '../access/watches.ts'
import { addressRangeList, text, textList, toggle, wholeNumber, type Options } from './option.ts'

/** Of every command that reads access logs. */
export const accessOptions = {
  site: { ...text('SITE_ID', 'site that the logs belong to'), needed: true },
  format: { ...text('FORMAT', 'format of the logs, by name or as a format string'), default: 'auto' },
  'keep-query': {
    read: textList,
    value: 'NAME[,NAME]',
    default: '',
    help: 'query parameters to store with the page',
  },
  'keep-addresses': toggle('store the network of each agent: /24 of IPv4, /48 of IPv6'),
  'trusted-proxy': {
    read: addressRangeList,
    value: 'CIDR[,CIDR]',
    default: '',
    help: 'proxies whose X-Forwarded-For in the log is trusted',
  },
} as const

export const evidenceOptions = {
  'evidence-max-age': {
    read: wholeNumber(1, 36_500),
    value: 'DAYS',
    default: '180',
    help: 'lists of operators that were last seen longer ago contradict no claim of an agent',
  },
} satisfies Options

/** Of what judges the agents in logs. */
export const judgingOptions = {
  ...evidenceOptions,
  'evidence-dns': toggle('look up the host names of agents that their address does not prove'),
} satisfies Options

/** Of the server. */
export const accessLogOptions = {
  ...judgingOptions,
  watch: {
    read: watchRules,
    value: 'SITE=PATH',
    default: '',
    help: 'access log of a web server to follow, across rotation; in the file as [[watch]] with site, path and org',
    adds: true,
  },
  'listen-syslog': {
    read: syslogRules,
    value: 'SITE=udp:HOST:PORT|SITE=unix:PATH',
    default: '',
    help: 'address that receives an access log by syslog; what is lost on the way is not noticed; in the file as [[listen-syslog]] with site, address, org and trusted-proxy',
    adds: true,
  },
} satisfies Options
