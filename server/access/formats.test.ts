/** Every format and its recognition: the sample lines of the documentation of each server or service. */
import { describe, expect, test } from 'bun:test'
import { detectFormat } from './detect-format.ts'
import { formatNamed, logFormats, type ParsedLine } from './formats.ts'
import { emptyRequest, type LogRequest } from './log-request.ts'

const bytesOf = (text: string): string => Buffer.from(text).toString('latin1')

function parse(format: string, ...lines: string[]): ParsedLine {
  const parser = formatNamed(format).open()
  return lines.map((line) => parser(bytesOf(line), 0, bytesOf(line).length)).at(-1) ?? null
}

/** What detection makes of these lines, and the last of its samples. */
function detected(...lines: string[]): [name: string, request: Partial<LogRequest> | undefined] {
  const detection = detectFormat(bytesOf(`${lines.join('\n')}\n`))
  if ('seen' in detection) return [detection.seen, undefined]
  const request = detection.guess.samples.at(-1)!
  return [
    detection.guess.format.name,
    Object.fromEntries(Object.entries(request).filter(([, value]) => value !== null)),
  ]
}

const parseMs = (text: string): number => Date.parse(text)
const agent = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)'

/** Samples of the documentation of each server or service. */
const samples: [name: string, lines: string[], request: Partial<LogRequest>][] = [
  [
    'combined',
    [
      '127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326 "http://www.example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"',
    ],
    {
      timeMs: parseMs('2000-10-10T20:55:36Z'),
      address: '127.0.0.1',
      method: 'GET',
      path: '/apache_pb.gif',
      protocol: 'HTTP/1.0',
      status: 200,
      bytes: 2326,
      referrer: 'http://www.example.com/start.html',
      userAgent: 'Mozilla/4.08 [en] (Win98; I ;Nav)',
    },
  ],
  [
    'combined-forwarded',
    [
      `10.0.0.9 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agent}" "203.0.113.7, 10.0.0.1"`,
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '10.0.0.9',
      forwarded: '203.0.113.7, 10.0.0.1',
      method: 'GET',
      path: '/',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5,
      userAgent: agent,
    },
  ],
  [
    'vcombined',
    [
      `shop.example:443 2001:db8::1 - - [23/Nov/2026:07:32:28 +0200] "GET /?a=1 HTTP/2.0" 304 - "-" "${agent}"`,
    ],
    {
      timeMs: parseMs('2026-11-23T05:32:28Z'),
      address: '2001:db8::1',
      host: 'shop.example',
      method: 'GET',
      path: '/?a=1',
      protocol: 'HTTP/2.0',
      status: 304,
      userAgent: agent,
    },
  ],
  [
    'vcombined-forwarded',
    [
      `shop.example:443 10.0.0.9 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agent}" "203.0.113.7"`,
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '10.0.0.9',
      forwarded: '203.0.113.7',
      method: 'GET',
      host: 'shop.example',
      path: '/',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5,
      userAgent: agent,
    },
  ],
  [
    'lighttpd', // its default, with the host that a client asked for
    [`203.0.113.7 shop.example - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agent}"`],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '203.0.113.7',
      host: 'shop.example',
      method: 'GET',
      path: '/',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5,
      userAgent: agent,
    },
  ],
  [
    'host-combined', // nginx with $host first
    [`shop.example 203.0.113.7 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agent}"`],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '203.0.113.7',
      host: 'shop.example',
      method: 'GET',
      path: '/',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5,
      userAgent: agent,
    },
  ],
  [
    'host-combined-forwarded',
    [
      `shop.example 10.0.0.9 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "${agent}" "203.0.113.7"`,
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '10.0.0.9',
      forwarded: '203.0.113.7',
      method: 'GET',
      host: 'shop.example',
      path: '/',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5,
      userAgent: agent,
    },
  ],
  [
    'host-common', // Apache's example of virtual hosts
    ['shop.example 203.0.113.7 - frank [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326'],
    {
      timeMs: parseMs('2000-10-10T20:55:36Z'),
      address: '203.0.113.7',
      host: 'shop.example',
      method: 'GET',
      path: '/',
      protocol: 'HTTP/1.0',
      status: 200,
      bytes: 2326,
    },
  ],
  [
    'common',
    ['127.0.0.1 user-identifier frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326'],
    {
      timeMs: parseMs('2000-10-10T20:55:36Z'),
      address: '127.0.0.1',
      method: 'GET',
      path: '/apache_pb.gif',
      protocol: 'HTTP/1.0',
      status: 200,
      bytes: 2326,
    },
  ],
  [
    'vcommon',
    ['shop.example:80 127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 2326'],
    {
      timeMs: parseMs('2000-10-10T20:55:36Z'),
      address: '127.0.0.1',
      host: 'shop.example',
      method: 'GET',
      path: '/',
      protocol: 'HTTP/1.0',
      status: 200,
      bytes: 2326,
    },
  ],
  [
    'w3c',
    [
      '#Software: Microsoft Internet Information Services 10.0',
      '#Version: 1.0',
      '#Date: 2026-11-23 07:00:00',
      '#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) cs-host sc-status sc-substatus sc-win32-status sc-bytes cs-bytes time-taken',
      '2026-11-23 07:00:01 10.0.0.1 GET /x a=1 443 - 203.0.113.5 Mozilla/5.0+(compatible;+GPTBot/1.2) https://a.example/?q=b+c shop.example 200 0 0 512 99 15',
    ],
    {
      timeMs: parseMs('2026-11-23T07:00:01Z'),
      address: '203.0.113.5',
      method: 'GET',
      path: '/x?a=1',
      host: 'shop.example',
      status: 200,
      bytes: 512,
      durationMs: 15,
      referrer: 'https://a.example/?q=b c',
      userAgent: 'Mozilla/5.0 (compatible; GPTBot/1.2)',
    },
  ],
  [
    'cloudfront',
    [
      '#Version: 1.0',
      '#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end',
      '2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\t-\tMozilla/5.0%20(Windows%20NT%2010.0;%20Win64;%20x64)%20AppleWebKit/537.36\t-\t-\tHit\tSOX4xwn4XV6Q4rgb7XiVGOHms_BGlTAC4KyHmureZmBNrjGdRLiNIQ==\tshop.example\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-',
    ],
    {
      timeMs: parseMs('2019-12-04T21:02:31Z'),
      address: '192.0.2.100',
      method: 'GET',
      path: '/index.html',
      host: 'shop.example',
      status: 200,
      bytes: 392,
      durationMs: 1,
      protocol: 'HTTP/2.0',
      userAgent: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36',
    },
  ],
  [
    'cloudstorage',
    [
      '"time_micros","c_ip","c_ip_type","c_ip_region","cs_method","cs_uri","sc_status","cs_bytes","sc_bytes","time_taken_micros","cs_host","cs_referer","cs_user_agent","s_request_id","cs_operation","cs_bucket","cs_object"',
      '"1380313080000000","192.0.2.1","1","","GET","/storage/v1/b/o","200","0","120","5000","storage.example","","Bot ""1""","id","GET_Object","b","o"',
    ],
    {
      timeMs: 1_380_313_080_000,
      address: '192.0.2.1',
      method: 'GET',
      path: '/storage/v1/b/o',
      status: 200,
      bytes: 120,
      durationMs: 5,
      host: 'storage.example',
      userAgent: 'Bot "1"',
    },
  ],
  [
    'awselb',
    [
      '2015-05-13T23:39:43.945958Z my-loadbalancer 192.168.131.39:2817 10.0.0.1:80 0.000086 0.001048 0.001337 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/7.38.0" DHE-RSA-AES128-SHA TLSv1.2',
    ],
    {
      timeMs: parseMs('2015-05-13T23:39:43.945Z'),
      address: '192.168.131.39',
      method: 'GET',
      path: '/',
      host: 'www.example.com:443',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 57,
      durationMs: 1.048,
      userAgent: 'curl/7.38.0',
    },
  ],
  [
    'awsalb',
    [
      'https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/a?b HTTP/1.1" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 "Root=1-58337281-1d84f3d73c47ec4e58577259" "www.example.com" "arn:aws:acm:us-east-2:123456789012:certificate/12345678-1234-1234-1234-123456789012" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-"',
    ],
    {
      timeMs: parseMs('2018-07-02T22:23:00.186Z'),
      address: '192.168.131.39',
      method: 'GET',
      path: '/a?b',
      host: 'www.example.com:443',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 57,
      durationMs: 48,
      userAgent: 'curl/7.46.0',
    },
  ],
  [
    'awss3',
    [
      '79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be DOC-EXAMPLE-BUCKET1 [06/Feb/2019:00:00:38 +0000] 192.0.2.3 79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /DOC-EXAMPLE-BUCKET1?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" - s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234= SigV4 ECDHE-RSA-AES128-GCM-SHA256 AuthHeader DOC-EXAMPLE-BUCKET1.s3.us-west-1.amazonaws.com TLSV1.2 - -',
    ],
    {
      timeMs: parseMs('2019-02-06T00:00:38Z'),
      address: '192.0.2.3',
      host: 'DOC-EXAMPLE-BUCKET1',
      method: 'GET',
      path: '/DOC-EXAMPLE-BUCKET1?versioning',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 113,
      durationMs: 7,
      userAgent: 'S3Console/0.4',
    },
  ],
  [
    'squid',
    [
      '1286536309.586    921 192.168.0.68 TCP_MISS/200 507 POST http://rcv.example/services - DIRECT/10.1.1.1 application/xml',
    ],
    {
      timeMs: 1_286_536_309_586,
      address: '192.168.0.68',
      status: 200,
      bytes: 507,
      method: 'POST',
      host: 'rcv.example',
      path: '/services',
      durationMs: 921,
    },
  ],
  [
    'traefikclf',
    [
      '192.0.2.4 - - [23/Nov/2026:07:32:28 +0000] "GET /whoami HTTP/2.0" 200 414 "-" "curl/8" 1 "web@docker" "http://172.18.0.2:80" 3ms',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '192.0.2.4',
      method: 'GET',
      path: '/whoami',
      protocol: 'HTTP/2.0',
      status: 200,
      bytes: 414,
      durationMs: 3,
      userAgent: 'curl/8',
    },
  ],
  [
    'nginx-proxy-manager',
    [
      '[23/Nov/2026:07:32:28 +0200] - 200 200 - GET https shop.example "/a?b" [Client 192.0.2.4] [Length 123] [Gzip 2.1] [Sent-to 10.0.0.9] "curl/8" "-"',
    ],
    {
      timeMs: parseMs('2026-11-23T05:32:28Z'),
      address: '192.0.2.4',
      method: 'GET',
      path: '/a?b',
      host: 'shop.example',
      status: 200,
      bytes: 123,
      userAgent: 'curl/8',
    },
  ],
  [
    'nginx-proxy-manager-direct',
    [
      '[23/Nov/2026:07:32:28 +0000] 404 - GET http shop.example "/a" [Client 192.0.2.4] [Length 12] [Gzip -] "curl/8" "https://a.example/"',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '192.0.2.4',
      method: 'GET',
      path: '/a',
      host: 'shop.example',
      status: 404,
      bytes: 12,
      userAgent: 'curl/8',
      referrer: 'https://a.example/',
    },
  ],
  [
    'caddy',
    [
      '{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Accept":["*/*"]},"tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},"bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}',
    ],
    {
      timeMs: 1_646_861_401_524,
      address: '127.0.0.1',
      method: 'GET',
      path: '/a?b',
      host: 'localhost',
      protocol: 'HTTP/2.0',
      status: 200,
      bytes: 10_900,
      durationMs: 0.929675,
      userAgent: 'curl/7.82.0',
    },
  ],
  [
    'traefik',
    [
      '{"ClientAddr":"192.0.2.4:50064","ClientHost":"192.0.2.4","DownstreamContentSize":414,"DownstreamStatus":200,"Duration":3000000,"RequestHost":"shop.example","RequestMethod":"GET","RequestPath":"/whoami","RequestProtocol":"HTTP/1.1","StartUTC":"2026-11-23T07:32:28.123456789Z","request_User-Agent":"curl/8","request_Referer":"https://a.example/","level":"info","time":"2026-11-23T07:32:28Z"}',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28.123Z'),
      address: '192.0.2.4',
      method: 'GET',
      path: '/whoami',
      host: 'shop.example',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 414,
      durationMs: 3,
      referrer: 'https://a.example/',
      userAgent: 'curl/8',
    },
  ],
  [
    'cloudflare',
    [
      '{"ClientIP":"203.0.113.9","ClientRequestHost":"shop.example","ClientRequestMethod":"GET","ClientRequestURI":"/a?b=1","ClientRequestProtocol":"HTTP/1.1","ClientRequestReferer":"","ClientRequestUserAgent":"x","EdgeEndTimestamp":"2026-11-23T07:32:29Z","EdgeResponseBytes":4600,"EdgeResponseStatus":403,"EdgeStartTimestamp":1795419148123456789,"RayID":"3a6050bcbe121a87"}',
    ],
    {
      timeMs: 1_795_419_148_123,
      address: '203.0.113.9',
      method: 'GET',
      path: '/a?b=1',
      host: 'shop.example',
      protocol: 'HTTP/1.1',
      status: 403,
      bytes: 4600,
      userAgent: 'x',
    },
  ],
  [
    'gcp',
    [
      '{"httpRequest":{"requestMethod":"GET","requestUrl":"https://shop.example/a?b","requestSize":"100","status":200,"responseSize":"5152","userAgent":"x","remoteIp":"203.0.113.9","referer":"https://a.example/","latency":"0.125s","protocol":"HTTP/1.1"},"insertId":"1","timestamp":"2026-11-23T07:32:28.5Z"}',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28.5Z'),
      address: '203.0.113.9',
      method: 'GET',
      path: '/a?b',
      host: 'shop.example',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 5152,
      durationMs: 125,
      referrer: 'https://a.example/',
      userAgent: 'x',
    },
  ],
  [
    'vercel',
    [
      '{"id":"1573817187330377061717300000","deploymentId":"dpl_1","source":"edge","host":"my-app.vercel.app","timestamp":1573817187330,"projectId":"p","level":"info","proxy":{"timestamp":1573817250172,"method":"GET","scheme":"https","host":"my-app.vercel.app","path":"/dynamic/some-value.json?route=some-value","userAgent":["Mozilla/5.0"],"referer":"my-app.vercel.app","statusCode":200,"clientIp":"120.75.16.101","region":"sfo1"}}',
    ],
    {
      timeMs: 1_573_817_250_172,
      address: '120.75.16.101',
      method: 'GET',
      host: 'my-app.vercel.app',
      path: '/dynamic/some-value.json?route=some-value',
      status: 200,
      referrer: 'my-app.vercel.app',
      userAgent: 'Mozilla/5.0',
    },
  ],
  [
    'netlify',
    [
      '{"account_tier":"pro","client_ip":"203.0.113.9","domain":"shop.example","duration":12,"log_type":"traffic","method":"GET","referrer":"https://a.example/","request_id":"1","response_size":99,"status_code":404,"timestamp":"2026-11-23T07:32:28.000Z","url":"https://shop.example/a?b","user_agent":"x"}',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28Z'),
      address: '203.0.113.9',
      method: 'GET',
      host: 'shop.example',
      path: '/a?b',
      status: 404,
      bytes: 99,
      durationMs: 12,
      referrer: 'https://a.example/',
      userAgent: 'x',
    },
  ],
  [
    'json',
    [
      '{"time_local":"23/Nov/2026:07:32:28 +0100","remote_addr":"203.0.113.9","remote_user":"","request":"GET /ä?b HTTP/1.1","status":"200","body_bytes_sent":"12","request_time":"0.004","http_referrer":"-","http_user_agent":"G\\u00e4"}',
    ],
    {
      timeMs: parseMs('2026-11-23T06:32:28Z'),
      address: '203.0.113.9',
      method: 'GET',
      path: '/ä?b',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 12,
      durationMs: 4,
      userAgent: 'Gä',
    },
  ],
  [
    'json', // HAProxy
    [
      '{"client_ip":"203.0.113.9","timestamp":"23/Nov/2026:07:32:28.123","http_method":"GET","http_uri":"/a","query_string":"?b=1","http_version":"HTTP/1.1","status_code":200,"bytes_read":12,"user_agent":"x"}',
    ],
    {
      timeMs: parseMs('2026-11-23T07:32:28.123Z'),
      address: '203.0.113.9',
      method: 'GET',
      path: '/a?b=1',
      protocol: 'HTTP/1.1',
      status: 200,
      bytes: 12,
      userAgent: 'x',
    },
  ],
]

describe('documented samples', () => {
  test.each(samples)('%s is recognized and read', (name, lines, request) => {
    expect(detected(...lines)).toEqual([name, request])
    expect(parse(name, ...lines)).toEqual({ ...emptyRequest(), ...request })
  })

  test('every format of the table has a sample, or needs none', () => {
    const sampleNames = new Set(samples.map(([name]) => name))
    expect(logFormats.map(({ name }) => name).filter((name) => !sampleNames.has(name))).toEqual([
      'squid-syslog',
    ])
  })
})

test('a format is refused with what the file looks like', () => {
  const detectName = (head: string): string => detected(head)[0]
  expect(detectName('\x7fELF\0\0\0')).toBe('it is a program')
  expect(detectName('\0\x01\x02\x03\x04'.repeat(50))).toBe('it is binary data')
  expect(detectName('BZh91AY')).toContain('install bzip2')
  expect(detectName('# only\n# comments')).toBe('it has only comments')
  const error = '2026/11/23 07:32:28 [error] 12#12: *1 open() "/x" failed (2: No such file or directory)'
  expect(detectName(error)).toContain('no known format fits its only line, which begins with "2026/11/23')
  const good = '1.2.3.4 - - [23/Nov/2026:07:32:28 +0000] "GET / HTTP/1.1" 200 5 "-" "x"'
  expect(detected(...Array<string>(60).fill(good), ...Array<string>(40).fill('noise'))[0]).toBe('combined')
  expect(detected(...Array<string>(40).fill(good), ...Array<string>(60).fill('noise'))[0]).toContain(
    'no known format fits more than 40 of',
  )
})
