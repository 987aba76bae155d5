/** Lines of every format of access logs by GPTBot, of which a client chooses everything but the address. */

export const gptBot = 'Mozilla/5.0 AppleWebKit/537.36 (compatible; GPTBot/1.3; +https://openai.com/gptbot)'

/** A request, of which a client chooses everything but the address. */
export interface Sent {
  peer: string
  host: string
  user: string
  path: string
  referrer: string
  forwarded: string
}

/** As nginx and Apache write a value between quotes. */
export const quoted = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"') || '-'
const word = (value: string): string => value.replaceAll(/[\s"]/g, '') || '-'
const percent = (value: string): string => encodeURIComponent(value).replaceAll('%', '%25') || '-'
export const plus = (value: string): string => value.replaceAll(' ', '+').replaceAll('"', '%22') || '-'
const double = (value: string): string => `"${value.replaceAll('"', '""')}"`
export const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)

export const timestamp = '05/Nov/2026:10:00:00 +0000'
export const iso = '2026-11-05T10:00:00.123456Z'
export const ncsa = ({ user, path, referrer }: Sent): string =>
  `- ${quoted(user)} [${timestamp}] "GET /${quoted(word(path))} HTTP/1.1" 200 5 "${quoted(referrer)}" "${gptBot}"`
const url = ({ host, path }: Sent): string => `https://${word(host)}:443/${word(path)}`
const cloudFrontFields =
  'date time sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent)'
const iisFields =
  'date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer)'

/** Lines of each format that has user agents; `heading` comes before the first of them. */
export const writers: { readonly [format: string]: { heading?: string; line(request: Sent): string } } = {
  traefikclf: {
    line: (request) => `${request.peer} ${ncsa(request)} 1 "web@docker" "http://172.18.0.2:80" 3ms`,
  },
  vcombined: { line: (request) => `${word(request.host)}:443 ${request.peer} ${ncsa(request)}` },
  'vcombined-forwarded': {
    line: (request) =>
      `${word(request.host)}:443 ${request.peer} ${ncsa(request)} "${quoted(request.forwarded)}"`,
  },
  'host-combined': { line: (request) => `${word(request.host)} ${request.peer} ${ncsa(request)}` },
  'host-combined-forwarded': {
    line: (request) =>
      `${word(request.host)} ${request.peer} ${ncsa(request)} "${quoted(request.forwarded)}"`,
  },
  lighttpd: {
    line: (sent) => {
      const host = sent.host.replaceAll(/[^\w.:-]/g, '') || '-'
      // It writes only names that it authenticated.
      return `${sent.peer} ${host} ${ncsa({ ...sent, user: '' }).slice(2)}`
    },
  },
  combined: { line: (request) => `${request.peer} ${ncsa(request)}` },
  'combined-forwarded': {
    line: (request) => `${request.peer} ${ncsa(request)} "${quoted(request.forwarded)}"`,
  },
  'nginx-proxy-manager': {
    line: ({ peer, host, path, referrer }) =>
      `[${timestamp}] - 200 200 - GET https ${word(host)} "/${quoted(word(path))}" ` +
      `[Client ${peer}] [Length 5] [Gzip -] ` +
      `[Sent-to 10.0.0.9] "${gptBot}" "${quoted(referrer)}"`,
  },
  'nginx-proxy-manager-direct': {
    line: ({ peer, host, path, referrer }) =>
      `[${timestamp}] 200 - GET https ${word(host)} "/${quoted(word(path))}" [Client ${peer}] [Length 5] [Gzip 1.2] ` +
      `"${gptBot}" "${quoted(referrer)}"`,
  },
  awsalb: {
    line: (request) =>
      `h2 ${iso} app/lb/1 ${bracketed(request.peer)}:1234 10.0.0.1:80 0.000 0.006 0.000 200 200 945 11891 ` +
      `"GET ${quoted(url(request))} HTTP/2.0" "${gptBot}" T T arn "Root" "${quoted(request.host)}" "arn" 0 ${iso}`,
  },
  awselb: {
    line: (request) =>
      `${iso} lb ${request.peer}:1234 10.0.0.1:80 0.0 0.0 0.0 200 200 0 57 ` +
      `"GET ${quoted(url(request))} HTTP/1.1" "${gptBot}" T T`,
  },
  awss3: {
    line: (request) =>
      `owner bucket [${timestamp}] ${request.peer} ${word(request.user)} ID REST.GET.OBJECT ${word(request.path)} ` +
      `"GET /${quoted(word(request.path))} HTTP/1.1" 200 - 113 - 7 - "${quoted(request.referrer)}" "${gptBot}" -`,
  },
  cloudstorage: {
    line: (request) =>
      [
        '1793872800000000',
        request.peer,
        '1',
        '',
        'GET',
        `/${request.path}`,
        '200',
        '0',
        '120',
        '5000',
        request.host,
      ]
        .concat(request.referrer, gptBot)
        .map(double)
        .join(','),
  },
  w3c: {
    heading: `#Fields: ${iisFields} cs(Cookie) sc-status time-taken X-Forwarded-For`,
    line: ({ peer, path, user, referrer, forwarded, host }) =>
      `2026-11-05 10:00:00 10.0.0.4 GET /${plus(path)} - 443 ${plus(user)} ${peer} ${plus(gptBot)} ${plus(referrer)} ` +
      `${plus(host)} 200 15 ${plus(forwarded)}`,
  },
  cloudfront: {
    heading: `#Fields: ${cloudFrontFields} cs(Cookie) x-host-header x-forwarded-for`,
    line: ({ peer, path, referrer, forwarded, host, user }) =>
      ['2026-11-05', '10:00:00', '392', peer, 'GET', 'd1.cloudfront.net', `/${percent(path)}`, '200']
        .concat(percent(referrer), percent(gptBot), percent(user), percent(host), percent(forwarded))
        .join('\t'),
  },
  caddy: {
    line: ({ peer, path, referrer, forwarded, host, user }) =>
      JSON.stringify({
        ts: 1_793_872_800.5,
        request: {
          remote_ip: peer,
          remote_port: '1',
          client_ip: peer,
          proto: 'HTTP/2.0',
          method: 'GET',
          host,
          uri: `/${path}`,
          headers: {
            'User-Agent': [gptBot],
            Referer: [referrer],
            Cookie: [user],
            'X-Real-Ip': [forwarded],
            'X-Forwarded-For': forwarded.split(',').map((hop) => hop.trim()),
          },
        },
        user_id: user,
        duration: 0.1,
        size: 10,
        status: 200,
      }),
  },
  traefik: {
    line: ({ peer, path, referrer, forwarded, host, user }) =>
      JSON.stringify({
        ClientAddr: `${bracketed(peer)}:50064`,
        ClientHost: peer,
        ClientUsername: user,
        RequestHost: host,
        DownstreamStatus: 200,
        RequestMethod: 'GET',
        RequestPath: `/${path}`,
        StartUTC: iso,
        'request_User-Agent': gptBot,
        request_Referer: referrer,
        'request_X-Forwarded-For': forwarded,
      }),
  },
  cloudflare: {
    line: ({ peer, path, referrer, host }) =>
      JSON.stringify({
        ClientIP: peer,
        ClientRequestHost: host,
        ClientRequestMethod: 'GET',
        ClientRequestURI: `/${path}`,
        EdgeResponseStatus: 200,
        EdgeStartTimestamp: 1_793_872_800,
        ClientRequestReferer: referrer,
        ClientRequestUserAgent: gptBot,
      }),
  },
  gcp: {
    line: (request) =>
      JSON.stringify({
        httpRequest: {
          requestMethod: 'GET',
          requestUrl: url(request),
          status: 200,
          userAgent: gptBot,
          remoteIp: request.peer,
          referer: request.referrer,
        },
        timestamp: iso,
      }),
  },
  vercel: {
    line: ({ peer, path, referrer, host }) =>
      JSON.stringify({
        host,
        timestamp: 1_793_872_800_000,
        proxy: {
          timestamp: 1_793_872_800_000,
          method: 'GET',
          host,
          path: `/${path}`,
          userAgent: [gptBot],
          referer: referrer,
          statusCode: 200,
          clientIp: peer,
        },
      }),
  },
  netlify: {
    line: (request) =>
      JSON.stringify({
        client_ip: request.peer,
        domain: request.host,
        method: 'GET',
        referrer: request.referrer,
        status_code: 200,
        timestamp: iso,
        url: url(request),
        user_agent: gptBot,
      }),
  },
  json: {
    line: ({ peer, path, referrer, forwarded, host, user }) =>
      JSON.stringify({
        time_iso8601: iso,
        remote_addr: peer,
        remote_user: user,
        http_host: host,
        status: '200',
        request: `GET /${word(path)} HTTP/1.1`,
        http_referer: referrer,
        http_user_agent: gptBot,
        http_x_forwarded_for: forwarded,
        http_cookie: user,
      }),
  },
}
