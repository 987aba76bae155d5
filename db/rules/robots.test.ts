/** Tests robots.txt against RFC 9309, its examples, the package `robots-parser`, and hostile files. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import robotsParser from 'robots-parser'
import { parseRobots, robotsBytesMax, robotsJudge } from './robots.ts'
import { robotsFamilies, robotsTokens } from './robots-families.ts'

const judge = (text: string, product: string, target: string) =>
  robotsJudge(parseRobots(text))([product, '*'], target)
const line = (text: string, product: string, target: string) => judge(text, product, target).line

describe('groups (RFC 9309 §2.2.1)', () => {
  test('the product token matches in any letter case, without a version; all its groups count together', () => {
    const file =
      'User-agent: GPTBot/1.2\nDisallow: /a\n\nuser-AGENT: *\nDisallow: /\n\nUser-Agent: gptbot\nDisallow: /b'
    expect(['/a', '/b', '/c'].map((path) => line(file, 'GPTBot', path))).toEqual([2, 8, null])
    expect(line(file, 'gptBOT', '/b')).toBe(8)
    expect(line(file, 'GPTBot-Image', '/b')).toBe(5)
  })

  test('a product without a group follows *, one with an empty group follows nothing', () => {
    const file = 'User-agent: a\n\nUser-agent: b\nDisallow:\n\nUser-agent: *\nDisallow: /'
    expect(judge(file, 'b', '/x')).toEqual({ allowed: true, line: null })
    expect(judge(file, 'c', '/x')).toEqual({ allowed: false, line: 7 })
    expect(judge('User-agent: a\nDisallow: /', 'c', '/x')).toEqual({ allowed: true, line: null })
  })

  test('the first of several tokens that has a group counts', () => {
    const judgeBoth = robotsJudge(
      parseRobots('User-agent: Googlebot\nDisallow: /g\nUser-agent: *\nDisallow: /'),
    )
    expect(judgeBoth(['Googlebot-Image', 'Googlebot', '*'], '/g').line).toBe(2)
    expect(judgeBoth(['Googlebot-Image', 'Googlebot', '*'], '/x').line).toBe(null)
    expect(judgeBoth(['Googlebot-Image', '*'], '/x').line).toBe(4)
  })

  test('rules outside of any group are ignored, and lines end in LF, CR or CRLF', () => {
    const file = parseRobots('\ufeffDisallow: /\rUser-agent: *\r\nDisallow: /x # why\rAllow: /x/y\n')
    expect(file).toMatchObject({ rules: 2, ignored: 1, isCut: false })
    expect(robotsJudge(file)(['a', '*'], '/x/y')).toEqual({ allowed: true, line: 4 })
    expect(robotsJudge(file)(['a', '*'], '/x/z')).toEqual({ allowed: false, line: 3 })
  })

  test('names of properties are ordinary products', () => {
    expect(line('User-agent: *\nDisallow: /', '__proto__', '/')).toBe(2)
    expect(line('User-agent: constructor\nDisallow: /', 'constructor', '/')).toBe(2)
  })
})

describe('families of crawlers', () => {
  /** Each crawler with the tokens that its operator documents, the most specific first. */
  test.each([
    ['Applebot', 'Applebot Googlebot *'],
    ['applebot', 'applebot Googlebot *'],
    ['Applebot-Extended', 'Applebot-Extended *'],
    ['Googlebot', 'Googlebot *'],
    ['Googlebot-Image', 'Googlebot-Image Googlebot *'],
    ['Googlebot-News', 'Googlebot-News Googlebot *'],
    ['Googlebot-Video', 'Googlebot-Video Googlebot *'],
    ['Google-InspectionTool', 'Google-InspectionTool Googlebot *'],
    ['Storebot-Google', 'Storebot-Google *'],
    ['GoogleOther', 'GoogleOther *'],
    ['GoogleOther-Image', 'GoogleOther-Image GoogleOther *'],
    ['GoogleOther-Video', 'GoogleOther-Video GoogleOther *'],
    ['Google-CloudVertexBot', 'Google-CloudVertexBot *'],
    ['Google-Extended', 'Google-Extended *'],
    ['AdsBot-Google', 'AdsBot-Google'],
    ['Mediapartners-Google', 'Mediapartners-Google'],
    ['YandexBot', 'YandexBot Yandex *'],
    ['YandexImages', 'YandexImages Yandex *'],
    ['Yandex', 'Yandex *'],
    ['YaDirectFetcher', 'YaDirectFetcher Yandex *'],
    ['bingbot', 'bingbot msnbot *'],
    ['msnbot', 'msnbot *'],
    ['GPTBot', 'GPTBot *'],
  ])('%s obeys %s', (name, tokens) => {
    expect(robotsTokens(name).join(' ')).toBe(tokens)
  })

  test('each has a source of its operator', () => {
    for (const { source } of robotsFamilies) expect(new URL(source).protocol).toBe('https:')
  })

  test('law: a crawler is judged by the first of its tokens that has a group, and by no other', () => {
    const crawlers = [
      'Applebot',
      'Googlebot-News',
      'GoogleOther-Image',
      'YandexBot',
      'bingbot',
      'AdsBot-Google',
    ]
    const groups = fc.uniqueArray(
      fc.constantFrom(...crawlers, 'Googlebot', 'GoogleOther', 'Yandex', 'msnbot', '*'),
      { minLength: 1 },
    )
    fc.assert(
      fc.property(fc.constantFrom(...crawlers), groups, (name, tokens) => {
        const text = tokens.map((token) => `User-agent: ${token}\nDisallow: /\n`).join('')
        const deciding = robotsTokens(name).find((token) => tokens.includes(token))
        const line = deciding === undefined ? null : 2 * tokens.indexOf(deciding) + 2
        expect(robotsJudge(parseRobots(text))(robotsTokens(name), '/x').line).toBe(line)
      }),
    )
  })
})

describe('rules (RFC 9309 §2.2.2 and §2.2.3)', () => {
  const isAllowed = (pattern: string, target: string) =>
    !judge(`User-agent: *\nDisallow: ${pattern}`, 'a', target).allowed

  test('the longest match wins, and allow wins a tie', () => {
    const file = [
      'User-agent: *',
      'Allow: /p',
      'Disallow: /',
      'Allow: /example/page/',
      'Disallow: /example/page/disallowed.gif',
      'Disallow: /same',
      'Allow: /same',
      'Disallow: /*.html',
    ].join('\n')
    expect(line(file, 'a', '/example/page/disallowed.gif')).toBe(5)
    expect(line(file, 'a', '/example/page/x')).toBe(4)
    expect(line(file, 'a', '/same/x')).toBe(7)
    expect(line(file, 'a', '/p.html')).toBe(8)
    expect(line(file, 'a', '/q')).toBe(3)
  })

  test.each([
    ['/foo/bar?baz=quz', '/foo/bar?baz=quz'],
    ['/foo/bar?baz=https://foo.bar', '/foo/bar?baz=https%3A%2F%2Ffoo.bar'],
    ['/foo/bar/ツ', '/foo/bar/%E3%83%84'],
    ['/foo/bar/%E3%83%84', '/foo/bar/%e3%83%84'],
    ['/foo/bar/%62%61%7A', '/foo/bar/baz'],
    ['/path/file-with-a-%2A.html', '/path/file-with-a-*.html'],
    ['/path/foo-%24', '/path/foo-$'],
    ['/a$b', '/a$b'],
    ['/a[1]', '/a[1]'],
    ['/a b', '/a%20b'],
  ])('%s and %s are the same path', (left, right) => {
    expect([isAllowed(left, right), isAllowed(left, left), isAllowed(left, `${right}/more`)]).toEqual([
      true,
      true,
      true,
    ])
    expect([
      isAllowed(left, right.slice(0, -1)),
      isAllowed(`${left}$`, right),
      isAllowed(`${left}$`, `${right}/more`),
    ]).toEqual([false, true, false])
  })

  test('reserved octets of a path keep their encoding, and paths differ by letter case', () => {
    expect([
      isAllowed('/a/b', '/a%2Fb'),
      isAllowed('/a%2Fb', '/a/b'),
      isAllowed('/A', '/a'),
      isAllowed('/a%3Fb', '/a?b'),
    ]).toEqual([false, false, false, false])
  })

  test('* matches any octets, $ the end', () => {
    expect([
      isAllowed('/*.php$', '/a/b.php'),
      isAllowed('/*.php$', '/a.php?x'),
      isAllowed('/*.php', '/a.php5'),
    ]).toEqual([true, false, true])
    expect([
      isAllowed('/a*b*c$', '/abcbc'),
      isAllowed('/a*bc$', '/abc'),
      isAllowed('/abc*bc$', '/abc'),
    ]).toEqual([true, true, false])
    expect([
      isAllowed('*', '/'),
      isAllowed('/*$', '/x'),
      isAllowed('/$', '/'),
      isAllowed('/$', '/x'),
      isAllowed('x', '/x'),
    ]).toEqual([true, true, true, false, false])
  })

  test('/robots.txt is always allowed', () => {
    expect(judge('User-agent: *\nDisallow: /', 'a', '/robots.txt').allowed).toBe(true)
    expect(judge('User-agent: *\nDisallow: /', 'a', '/robots.txt.bak').allowed).toBe(false)
  })
})

describe('other lines', () => {
  test.each(['GPTBot, CCBot', 'GPTBot,CCBot', 'GPTBot; CCBot', 'GPTBot|CCBot', 'GPT*', '*Bot', '*, GPTBot'])(
    'User-agent: %s matches nobody (§2.2.1), and is noted',
    (value) => {
      const text = `User-agent: ${value}\nDisallow: /`
      for (const name of ['GPTBot', 'CCBot', 'GPT', 'Bot', 'other'])
        expect(judge(text, name, '/x')).toEqual({ allowed: true, line: null })
      const file = parseRobots(text)
      expect(file).toMatchObject({ unmatched: 1, ignored: 0, rules: 1 })
      expect(file.notes).toMatchObject([{ line: 1, kind: 'unmatched', text: value }])
    },
  )

  test('names with versions, spaces, dots and digits are no fault', () => {
    for (const value of ['*', 'GPTBot/1.2', 'Kangaroo Bot', 'search.marginalia.nu', 'AI2Bot', '* # all'])
      expect(parseRobots(`User-agent: ${value}\nDisallow: /`)).toMatchObject({ unmatched: 0, notes: [] })
  })

  test('Content-Usage, Crawl-delay and Sitemap are noted with their group and end no group', () => {
    const file = parseRobots(
      [
        'Sitemap: https://a.example/map.xml',
        'User-agent: a',
        'Crawl-delay: 5',
        'User-agent: b',
        'Content-Usage: /img train-ai=n',
        'Disallow: /x',
        'Noindex: /y',
        'nonsense',
      ].join('\n'),
    )
    expect(file.notes).toEqual([
      { line: 1, kind: 'sitemap', products: [], text: 'https://a.example/map.xml' },
      { line: 3, kind: 'crawl-delay', products: ['a'], text: '5' },
      { line: 5, kind: 'content-usage', products: ['a', 'b'], text: '/img train-ai=n' },
      { line: 7, kind: 'ignored', products: ['a', 'b'], text: 'Noindex: /y' },
      { line: 8, kind: 'ignored', products: ['a', 'b'], text: 'nonsense' },
    ])
    expect([file.ignored, file.rules]).toEqual([2, 1])
    expect([robotsJudge(file)(['a', '*'], '/x').line, robotsJudge(file)(['b', '*'], '/x').line]).toEqual([
      6, 6,
    ])
  })

  test('whole lines of the first 500 KiB are read', () => {
    const head = `User-agent: *\nDisallow: /a\n${'#é'.repeat(robotsBytesMax / 3 - 9)}`
    const file = parseRobots(`${head}\nDisallow: /b\nDisallow: /c`)
    expect([file.isCut, file.rules]).toEqual([true, 1])
    expect(parseRobots(head)).toMatchObject({ isCut: false, rules: 1 })
    expect(parseRobots('\n'.repeat(robotsBytesMax + 1)).isCut).toBe(true)
  })
})

/** 2,500 files with 40 requests each. */
const files = 2_500
const requests = 40

const pieces = [
  'a',
  'b',
  '/',
  'a/',
  'foo',
  '.html',
  '?',
  '=',
  '&',
  '*',
  '$',
  '~',
  '%2f',
  '%62',
  '%2A',
  '%24',
  'é',
  '%C3%A9',
  '+',
]
const patterns = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .array(fc.constantFrom(...pieces), { maxLength: 4 })
      .map((segments) => `/${segments.join('')}`),
  },
  { weight: 1, arbitrary: fc.constantFrom('', '*', '*a', 'a', '/', '/robots', '/*.html$', '$') },
)
const products = fc.constantFrom('a', 'b', 'A/1.0', '*', 'GPTBot', 'gptbot')
const lines = fc.oneof(
  { weight: 3, arbitrary: products.map((product) => `User-agent: ${product}`) },
  { weight: 4, arbitrary: patterns.map((pattern) => `Disallow: ${pattern}`) },
  { weight: 3, arbitrary: patterns.map((pattern) => `allow:${pattern} # why`) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '',
      '# x',
      'Sitemap: /a',
      'Crawl-delay: 2',
      'junk',
      'Noindex: /',
      'User-agent:',
    ),
  },
)
const texts = fc
  .array(fc.tuple(lines, fc.constantFrom('\n', '\n', '\r\n', '\r')), { minLength: 1, maxLength: 14 })
  .map((linePairs) => linePairs.flat().join(''))
/** An empty query is left out there, because it reads URLs: see below. */
const targetOf = (segments: string[]): string => `/${segments.join('').replace(/\?+$/, '')}`
const targets = fc.oneof(
  { weight: 12, arbitrary: fc.array(fc.constantFrom(...pieces), { maxLength: 7 }).map(targetOf) },
  { weight: 1, arbitrary: fc.constant('/robots.txt') },
)

/**
 * What `robots-parser` 3.0.1 does differently, each undone by a change of its input: with all of them it must agree.
 * A change keeps the number of lines.
 */
const differences = {
  /** §2.2.4: another record "MUST NOT terminate a group". There it ends the list of user agents. */
  otherRecords: (text: string) => text.replaceAll(/^(?!user-agent:|disallow:|allow:)[^\r\n]+/gim, '#'),
  /** §2.2.2: an encoded octet that RFC 3986 leaves unreserved is decoded before the comparison. */
  unreserved: (text: string) => text.replaceAll('%62', 'b'),
  /** §2.2.3: `%2A` and `%24` in a pattern match these characters in a path. There only the encoded ones. */
  literals: (text: string) => text.replaceAll(/\$(?!$|[\r\n]| #)/gm, '%24'),
  /** §2.2.2: "there are no rules in the group, the URI is allowed." There such a group at the end does not exist. */
  noRules: (text: string) => `${text}\nDisallow:`,
  /** §2.2.2, third row of the table: in a query `/` and `%2F` are the same. */
  query: (text: string) => text.replaceAll(/\?[^\r\n#]*/g, (query) => query.replaceAll(/%2f/gi, '/')),
} as const
const forPath = (path: string): string =>
  differences.query(differences.unreserved(path)).replaceAll('$', '%24').replaceAll('*', '%2A')
const forText = (text: string): string =>
  Object.values(differences).reduce((changed, change) => change(changed), text)

test('robots-parser agrees on 100,000 random requests, except where RFC 9309 says otherwise', () => {
  const host = 'https://a.example'
  const origin = `${host}/robots.txt`
  const differ = { asGiven: 0, pairs: 0, disallowed: 0 }
  fc.assert(
    fc.property(
      texts,
      fc.array(fc.tuple(products, targets), { minLength: requests, maxLength: requests }),
      (text, queries) => {
        const ourJudge = robotsJudge(parseRobots(text))
        const referenceRobot = robotsParser(origin, forText(text))
        const [agentName, path] = queries[0]!
        if (
          robotsParser(origin, text).isAllowed(host + path, agentName) !==
          ourJudge([agentName, '*'], path).allowed
        )
          differ.asGiven++
        for (const [product, target] of queries) {
          const verdict = ourJudge([product, '*'], target)
          differ.pairs++
          if (!verdict.allowed) differ.disallowed++
          if (target === '/robots.txt') {
            // §2.2.2: "The /robots.txt URI is implicitly allowed." There it can be disallowed.
            expect(verdict).toEqual({ allowed: true, line: null })
            continue
          }
          const url = host + forPath(target)
          const lineNumber = referenceRobot.getMatchingLineNumber(url, product)
          const referenceVerdict = {
            allowed: referenceRobot.isAllowed(url, product),
            line: lineNumber === -1 ? null : lineNumber,
          }
          if (Bun.deepEquals(verdict, referenceVerdict as object)) continue
          expect({ text, product, target, ...verdict }).toEqual({
            text,
            product,
            target,
            ...(referenceVerdict as object),
          } as never)
        }
      },
    ),
    { numRuns: files },
  )
  expect(differ.pairs).toBe(100_000)
  expect(differ.disallowed).toBeGreaterThan(3_000)
  expect(differ.asGiven).toBeGreaterThan(0)
}, 30_000)

describe('each difference from robots-parser', () => {
  const referenceAllows = (text: string, path: string) =>
    robotsParser('https://a.example/robots.txt', text).isAllowed(`https://a.example${path}`, 'a')
  test.each([
    ['otherRecords', 'User-agent: a\nSitemap: /s\nUser-agent: b\nDisallow: /', '/'],
    ['unreserved', 'User-agent: *\nDisallow: /%62', '/b'],
    ['literals', 'User-agent: *\nDisallow: /a%2A', '/a*'],
    ['query', 'User-agent: *\nDisallow: /?u=/b', '/?u=%2Fb'],
  ])('%s', (_, text, path) => {
    expect([judge(text, 'a', path).allowed, referenceAllows(text, path)]).toEqual([false, true])
  })
  test('noRules', () => {
    const text = 'User-agent: *\nDisallow: /\nUser-agent: a'
    expect([judge(text, 'a', '/').allowed, referenceAllows(text, '/')]).toEqual([true, false])
  })
  test('an empty query is a part of the target (§2.2.2 compares octets)', () => {
    expect(judge('User-agent: *\nDisallow: /a?', 'a', '/a?').allowed).toBe(false)
    expect(referenceAllows('User-agent: *\nDisallow: /a?', '/a?')).toBe(true)
  })
  test('a path in brackets is itself: there a rule is encoded and the path is not', () => {
    expect(judge('User-agent: *\nDisallow: /a[1]', 'a', '/a[1]').allowed).toBe(false)
    expect(referenceAllows('User-agent: *\nDisallow: /a[1]', '/a[1]')).toBe(true)
  })
})

describe('hostile files', () => {
  test.each([
    ['many wildcards', `/${'*a'.repeat(200_000)}*b`],
    ['wildcards that all match', `/${'*'.repeat(400_000)}$`],
    ['a long literal', `/*${'a'.repeat(400_000)}`],
  ])('%s: a pattern is matched in one pass over the path', (_, pattern) => {
    const judgeIt = robotsJudge(parseRobots(`User-agent: *\nDisallow: ${pattern}`))
    for (let n = 0; n < 20; n++) judgeIt(['a', '*'], `/${'a'.repeat(8_000)}`)
    expect(judgeIt(['a', '*'], `/${'a'.repeat(8_000)}`).allowed).toBe(!pattern.endsWith('$'))
  })

  test('many rules and products', () => {
    const names = Array.from({ length: 10_000 }, (_, n) => `User-agent: p${n}`).join('\n')
    const rules = Array.from({ length: 15_000 }, (_, n) => `Disallow: /*${n}`).join('\n')
    const file = parseRobots(`${names}\n${rules}`)
    expect([file.isCut, file.rules]).toEqual([false, 15_000])
    const judgeIt = robotsJudge(file)
    expect(judgeIt(['p1', '*'], '/x14999').line).toBe(25_000)
    expect(judgeIt(['p9999', '*'], '/x').line).toBe(null)
    expect(judgeIt(['q', '*'], '/x14999').line).toBe(null)
  })

  test('any text parses, and a verdict names a line of the file', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        fc.string({ unit: 'binary' }),
        fc.string(),
        (text, target, product) => {
          const robotsText = `User-agent: *\nDisallow: /${target}\n${text}`
          const verdict = judge(robotsText, product, `/${target}`)
          expect(verdict.line ?? 1).toBeLessThanOrEqual(robotsText.split(/\r\n|\r|\n/).length)
          expect(verdict.allowed || verdict.line !== null).toBe(true)
        },
      ),
    )
  })
})
