/**
 * Lines of access logs as servers write them, each with its own way of escaping, of requests whose every field may hold
 * anything. What a reader should find is computed from the request, not from the line.
 */

/** Texts are bytes: a character each, as `latin1` decodes them. An absent header is ''. */
export interface ServedRequest {
  address: string
  user: string
  host: string
  method: string
  target: string
  protocol: string
  status: number
  bytes: number
  referrer: string
  userAgent: string
  forwarded: string
  timeMs: number
  /** Minutes east of Greenwich, which servers write into a local time. */
  zoneMinutes: number
}

export interface Expected {
  timeMs: number
  address: string | null
  status: number
  bytes: number | null
  method: string | null
  path: string | null
  userAgent: string | null
  referrer: string | null
  forwarded: string | null
}

export interface ServerWriter {
  /** The name by which the reader knows the format. */
  format: string
  heading?: string
  line(request: ServedRequest): string
  /** What the format has of the fields that a client chooses. */
  fields: readonly (keyof Expected)[]
  /** Where the format itself makes two values alike, a function that makes them alike, too. */
  normalize?(value: string): string
  /** Whether the address may be withheld, because a client made the line ambiguous. */
  mayHideAddress?(request: ServedRequest): boolean
  /** Whether the whole log may be one of another format. */
  mayBeOther?(request: ServedRequest): boolean
  /** A proxy that answers nothing that is no request, or re-encodes what it forwards. */
  request?(request: ServedRequest): ServedRequest
}

const twoDigits = (value: number): string => String(value).padStart(2, '0')
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `05/Nov/2026:10:00:00 +0530` */
function localTime({ timeMs, zoneMinutes }: ServedRequest): string {
  const local = new Date(timeMs + zoneMinutes * 60_000)
  const date = `${twoDigits(local.getUTCDate())}/${months[local.getUTCMonth()]}/${local.getUTCFullYear()}`
  const clock = local.toISOString().slice(11, 19)
  const minutes = Math.abs(zoneMinutes)
  const zone = `${zoneMinutes < 0 ? '-' : '+'}${twoDigits(Math.trunc(minutes / 60))}${twoDigits(minutes % 60)}`
  return `${date}:${clock} ${zone}`
}

const isoTime = ({ timeMs }: ServedRequest): string => new Date(timeMs).toISOString()
const hex = (code: number): string => code.toString(16).padStart(2, '0')
const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)
const escapeEach = (value: string, escape: (character: string, code: number) => string): string =>
  [...value].map((character) => escape(character, character.charCodeAt(0))).join('')

/** ngx_http_log_escape: `\xXX` for a quote, a backslash, controls and every byte above `~`. */
const nginxText = (value: string): string =>
  escapeEach(value, (character, code) =>
    character === '"' || character === '\\' || code < 32 || code > 126
      ? `\\x${hex(code).toUpperCase()}`
      : character,
  ) || '-'

const cLetters: { readonly [character: string]: string } = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
}

/** ap_escape_logitem and lighttpd: letters for some controls, `\xhh` for the others. */
const apacheText = (value: string): string =>
  escapeEach(
    value,
    (character, code) => cLetters[character] ?? (code < 32 || code > 126 ? `\\x${hex(code)}` : character),
  ) || '-'

/** Go's strconv.Quote, without its quotes. */
const goText = (bytes: string): string => {
  const runes = decodedRunes(bytes)
  const letters: { readonly [character: string]: string } = {
    ...cLetters,
    '\u0007': '\\a',
    '\f': '\\f',
  }
  const text = runes.map(({ rune, byte }) => {
    if (rune === null) return `\\x${hex(byte)}`
    const letter = letters[rune]
    if (letter !== undefined) return letter
    const code = rune.codePointAt(0)!
    if (code < 32 || code === 127) return `\\x${hex(code)}`
    if (isGraphic(rune)) return Buffer.from(rune).toString('latin1')
    return code > 0xffff
      ? `\\U${code.toString(16).padStart(8, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return text.join('') || '-'
}

const isGraphic = (rune: string): boolean => rune === ' ' || !/[\p{C}\p{Z}]/u.test(rune)

/** Runes of UTF-8 as Go decodes it: a byte that begins none stands alone. */
function decodedRunes(bytes: string): { rune: string | null; byte: number }[] {
  const runes: { rune: string | null; byte: number }[] = []
  let index = 0
  while (index < bytes.length) {
    const match =
      /^(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})/.exec(
        bytes.slice(index, index + 4),
      )
    const text = match === null ? null : Buffer.from(match[0], 'latin1').toString()
    const isValid = match !== null && text !== null && !text.includes('\ufffd')
    runes.push({ rune: isValid ? text : null, byte: bytes.charCodeAt(index) })
    index += isValid ? match[0].length : 1
  }
  return runes
}

/** nginx `escape=json`: bytes above `~` stay as they are. */
const nginxJson = (value: string): string =>
  `"${escapeEach(value, (character, code) => {
    if (character === '"' || character === '\\') return `\\${character}`
    const letter = { '\b': '\\b', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\f': '\\f' }[character]
    return letter ?? (code < 32 ? `\\u00${hex(code).toUpperCase()}` : character)
  })}"`

/** zap, of Caddy: each byte that is no UTF-8 becomes `\ufffd`. */
const zapJson = (bytes: string): string => goJson(bytes, '')
/** Go's encoding/json, of Traefik, escapes also what would end a script. */
const logrusJson = (bytes: string): string => goJson(bytes, '<>&\u2028\u2029')

function goJson(bytes: string, more: string): string {
  const text = decodedRunes(bytes).map(({ rune }) => {
    if (rune === null) return '\\ufffd'
    if (rune === '"' || rune === '\\') return `\\${rune}`
    const letter = { '\n': '\\n', '\r': '\\r', '\t': '\\t' }[rune]
    if (letter !== undefined) return letter
    const code = rune.codePointAt(0)!
    if (code < 32 || more.includes(rune)) return `\\u${code.toString(16).padStart(4, '0')}`
    return Buffer.from(rune).toString('latin1')
  })
  return `"${text.join('')}"`
}

/** A JSON object of values that are JSON already. */
const object = (fields: { [name: string]: string }): string =>
  `{${Object.entries(fields)
    .map(([name, value]) => `"${name}":${value}`)
    .join(',')}}`

/** IIS and HTTP.sys write blanks and controls as a plus sign, and nothing else in another way. */
const iisText = (value: string): string =>
  escapeEach(value, (character, code) => (code <= 32 || code === 127 ? '+' : character)) || '-'

const cloudFrontCharacters = '<>"#%{}|\\^~[]`\''
/** CloudFront encodes controls, bytes beyond ASCII and some characters. */
const cloudFrontText = (value: string): string => percentEncode(value, cloudFrontCharacters) || '-'

const percentDecoded = (value: string): string =>
  value.replaceAll(/%([\dA-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  )

/** What has a field of its own for the query writes a minus for none, and some write its question mark. */
const withPlainQuery = (target: string): string => target.replaceAll(/\?+/g, '?').replace(/\?-?$/, '')

const requestLine = ({ method, target, protocol }: ServedRequest): string => `${method} ${target} ${protocol}`
const clientFields = ['method', 'path', 'userAgent', 'referrer'] as const
const withForwarded = [...clientFields, 'forwarded'] as const
const withoutSpaces = (request: ServedRequest): ServedRequest => ({
  ...request,
  target: request.target.replaceAll(/[\x00- \x7f]/g, ''),
})
const percentEncode = (value: string, characters: string): string =>
  escapeEach(value, (character, code) =>
    code <= 32 || code >= 127 || characters.includes(character) ? `%${hex(code).toUpperCase()}` : character,
  )
/** Go's URL re-encodes a path; what it leaves alone stays. */
const goTarget = (request: ServedRequest): ServedRequest => ({
  ...request,
  target: percentEncode(request.target, '"<>\\^`{|}'),
})

const nginxCombined = (request: ServedRequest): string =>
  `${request.address} - ${nginxText(request.user)} [${localTime(request)}] "${nginxText(requestLine(request))}" ` +
  `${request.status} ${request.bytes} "${nginxText(request.referrer)}" "${nginxText(request.userAgent)}"`
const apacheCommon = (request: ServedRequest, host = '-'): string =>
  `${request.address} ${host} ${apacheText(request.user)} [${localTime(request)}] ` +
  `"${apacheText(requestLine(request))}" ${request.status} ${request.bytes}`
const apacheEnd = (request: ServedRequest): string =>
  ` "${apacheText(request.referrer)}" "${apacheText(request.userAgent)}"`
const configuredHost = 'shop.example'

export const serverWriters: { readonly [server: string]: ServerWriter } = {
  'nginx, combined': { format: 'combined', fields: clientFields, line: nginxCombined },
  'nginx, main': {
    format: 'combined-forwarded',
    fields: withForwarded,
    line: (request) => `${nginxCombined(request)} "${nginxText(request.forwarded)}"`,
  },
  'nginx, escape=json': {
    format: 'json',
    fields: withForwarded,
    line: (request) =>
      object({
        time_iso8601: `"${isoTime(request)}"`,
        remote_addr: nginxJson(request.address),
        remote_user: nginxJson(request.user),
        request: nginxJson(requestLine(request)),
        status: `"${request.status}"`,
        body_bytes_sent: `"${request.bytes}"`,
        http_host: nginxJson(request.host),
        http_referer: nginxJson(request.referrer),
        http_user_agent: nginxJson(request.userAgent),
        http_x_forwarded_for: nginxJson(request.forwarded),
      }),
  },
  'nginx, JSON without escape=json': {
    format: 'json',
    fields: withForwarded,
    line: (request) =>
      object({
        '@timestamp': `"${isoTime(request)}"`,
        remote_addr: `"${nginxText(request.address)}"`,
        request: `"${nginxText(requestLine(request))}"`,
        status: `"${request.status}"`,
        size: String(request.bytes),
        http_host: `"${nginxText(request.host)}"`,
        referer: `"${nginxText(request.referrer)}"`,
        http_user_agent: `"${nginxText(request.userAgent)}"`,
        http_x_forwarded_for: `"${nginxText(request.forwarded)}"`,
      }),
  },
  'Apache, combined': {
    format: 'combined',
    fields: clientFields,
    line: (request) => `${apacheCommon(request)}${apacheEnd(request)}`,
  },
  'Apache, vhost_combined': {
    format: 'vcombined',
    fields: clientFields,
    mayHideAddress: ({ user }) => / [^ ]*\d[^ ]* - /.test(` ${user} `),
    line: (request) => `${configuredHost}:443 ${apacheCommon(request)}${apacheEnd(request)}`,
  },
  'Apache, common': {
    format: 'common',
    fields: ['method', 'path'],
    line: (request) => apacheCommon(request),
  },
  lighttpd: {
    format: 'lighttpd',
    fields: clientFields,
    mayHideAddress: ({ host }) => /[.:]/.test(host),
    // It writes only names that it authenticated.
    request: (request) => ({ ...request, user: '' }),
    line: (request) =>
      `${apacheCommon(request, apacheText(request.host.replaceAll(/[^\w.:-]/g, '')))}${apacheEnd(request)}`,
  },
  Caddy: {
    format: 'caddy',
    fields: withForwarded,
    request: withoutSpaces,
    line: (request) =>
      object({
        level: '"info"',
        ts: String(request.timeMs / 1_000),
        request: object({
          remote_ip: `"${request.address}"`,
          client_ip: `"${request.address}"`,
          proto: `"${request.protocol}"`,
          method: zapJson(request.method),
          host: zapJson(request.host),
          uri: zapJson(request.target),
          headers: object({
            'User-Agent': `[${zapJson(request.userAgent)}]`,
            Referer: `[${zapJson(request.referrer)}]`,
            'X-Forwarded-For': `[${zapJson(request.forwarded)}]`,
          }),
        }),
        user_id: zapJson(request.user),
        size: String(request.bytes),
        status: String(request.status),
      }),
  },
  'Traefik, CLF': {
    format: 'traefikclf',
    fields: clientFields,
    // It escapes no user name, which may therefore end like a line of nginx.
    mayBeOther: ({ user }) => user.includes('"'),
    request: goTarget,
    line: (request) =>
      `${request.address} - ${request.user || '-'} [${localTime(request)}] "${requestLine(request)}" ` +
      `${request.status} ${request.bytes} "${goText(request.referrer)}" "${goText(request.userAgent)}" 17 ` +
      '"web@docker" "http://172.18.0.2:80" 3ms',
  },
  'Traefik, JSON': {
    format: 'traefik',
    fields: withForwarded,
    request: withoutSpaces,
    line: (request) =>
      object({
        ClientAddr: `"${bracketed(request.address)}:50064"`,
        ClientHost: `"${request.address}"`,
        ClientUsername: logrusJson(request.user),
        DownstreamContentSize: String(request.bytes),
        DownstreamStatus: String(request.status),
        RequestHost: logrusJson(request.host),
        RequestMethod: logrusJson(request.method),
        RequestPath: logrusJson(request.target),
        RequestProtocol: `"${request.protocol}"`,
        StartUTC: `"${isoTime(request)}"`,
        'request_User-Agent': logrusJson(request.userAgent),
        request_Referer: logrusJson(request.referrer),
        'request_X-Forwarded-For': logrusJson(request.forwarded),
      }),
  },
  'HAProxy, JSON': {
    format: 'json',
    fields: ['method', 'path', 'userAgent'],
    request: withoutSpaces,
    line: (request) =>
      object({
        accept_date: `"${isoTime(request)}"`,
        client_ip: `"${request.address}"`,
        client_port: '50064',
        http_method: nginxJson(request.method),
        http_uri: nginxJson(request.target),
        status_code: String(request.status),
        bytes_read: String(request.bytes),
        host: nginxJson(request.host),
        http_user_agent: nginxJson(request.userAgent),
      }),
  },
  'Envoy, JSON': {
    format: 'json',
    fields: ['method', 'path', 'userAgent', 'forwarded'],
    request: withoutSpaces,
    line: (request) =>
      object({
        start_time: `"${isoTime(request)}"`,
        downstream_remote_address: `"${bracketed(request.address)}:50064"`,
        method: nginxJson(request.method),
        path: nginxJson(request.target),
        protocol: `"${request.protocol}"`,
        response_code: String(request.status),
        bytes_sent: String(request.bytes),
        authority: nginxJson(request.host),
        user_agent: nginxJson(request.userAgent),
        x_forwarded_for: nginxJson(request.forwarded),
      }),
  },
  IIS: {
    format: 'w3c',
    fields: withForwarded,
    heading:
      '#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) ' +
      'cs-host sc-status sc-substatus sc-win32-status sc-bytes time-taken X-Forwarded-For',
    request: (request) => ({ ...request, target: withPlainQuery(iisText(request.target)) }),
    normalize: (value) => percentDecoded(value.replaceAll(/[+\x00- \x7f]/g, ' ')),
    line: (request) => {
      const [stem = '', ...query] = iisText(request.target).split('?')
      const [date = '', clock = ''] = isoTime(request).slice(0, 19).split('T')
      return [date, clock, '10.0.0.4', iisText(request.method), stem, query.join('?') || '-', '443']
        .concat(iisText(request.user), request.address, iisText(request.userAgent), iisText(request.referrer))
        .concat(iisText(request.host), String(request.status), '0', '0', String(request.bytes), '15')
        .concat(iisText(request.forwarded))
        .join(' ')
    },
  },
  CloudFront: {
    format: 'cloudfront',
    fields: withForwarded,
    heading:
      '#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) ' +
      'cs(User-Agent) cs-uri-query cs(Cookie) x-host-header time-taken x-forwarded-for',
    request: (request) => ({ ...request, target: withPlainQuery(cloudFrontText(request.target)) }),
    normalize: (value) => percentDecoded(percentDecoded(value)),
    line: (request) => {
      const [stem = '', ...query] = cloudFrontText(request.target).split('?')
      const [date = '', clock = ''] = isoTime(request).slice(0, 19).split('T')
      return [date, clock, 'FRA2', String(request.bytes), request.address, request.method]
        .concat('d1.cloudfront.net', stem, String(request.status), cloudFrontText(request.referrer))
        .concat(cloudFrontText(request.userAgent), query.join('?') || '-', cloudFrontText(request.user))
        .concat(cloudFrontText(request.host), '0.001', cloudFrontText(request.forwarded))
        .join('\t')
    },
  },
  'AWS ALB': {
    format: 'awsalb',
    fields: ['method', 'path', 'userAgent'],
    line: (request) =>
      `h2 ${isoTime(request)} app/lb/1 ${request.address}:50064 10.0.0.1:80 0.000 0.006 0.000 ${request.status} ` +
      `${request.status} 945 ${request.bytes} ` +
      `"${nginxText(requestLine({ ...request, target: `https://${configuredHost}:443${request.target}` }))}" ` +
      `"${nginxText(request.userAgent)}" T T arn "Root" "${nginxText(request.host)}" "arn" 0 ${isoTime(request)} ` +
      '"forward" "-" "-" "10.0.0.1:80" "200" "-" "-"',
  },
  'Squid, native': {
    format: 'squid',
    fields: ['method', 'path'],
    request: (request) => ({ ...request, target: percentEncode(request.target, `"<>#{}|\\^~[]\`'`) }),
    line: (request) =>
      `${(request.timeMs / 1_000).toFixed(3)}     11 ${request.address} TCP_MISS/${request.status} ${request.bytes} ` +
      `${request.method} ${request.target} ${apacheText(request.user)} HIER_DIRECT/203.0.113.80 text/html`,
  },
}

/** What stands for nothing in a log: a client that sends it cannot be told from one that sends nothing. */
const textOrNull = (bytes: string): string | null =>
  bytes === '' || bytes === '-' ? null : Buffer.from(bytes, 'latin1').toString()

/** What a reader should find, of the fields that the format has. */
export function expectedOf(writer: ServerWriter, sent: ServedRequest): Partial<Expected> {
  const request = writer.request?.(sent) ?? sent
  const all: Expected = {
    timeMs: request.timeMs,
    address: request.address.replace(/%.*/, ''),
    status: request.status,
    bytes: request.bytes,
    method: request.method,
    path: textOrNull(request.target),
    userAgent: textOrNull(request.userAgent),
    referrer: textOrNull(request.referrer),
    forwarded: textOrNull(request.forwarded),
  }
  const expected: Partial<Expected> = {
    timeMs: all.timeMs,
    address: all.address,
    status: all.status,
    bytes: all.bytes,
  }
  for (const name of writer.fields) Object.assign(expected, { [name]: all[name] })
  return expected
}
