/** Which groups of a robots.txt each crawler obeys, as its operator documents it. */

interface RobotsFamily {
  /** Names of crawlers. */
  names: RegExp
  /** Tokens that a crawler obeys where it has no group of its own, the most specific first. */
  follows: string[]
  /** Crawlers that obey no group of `*`. */
  ignoresDefault?: true
  source: string
}

const googleCommon = 'https://developers.google.com/crawling/docs/crawlers-fetchers/google-common-crawlers'
const googleSpecial =
  'https://developers.google.com/crawling/docs/crawlers-fetchers/google-special-case-crawlers'

/**
 * Storebot-Google, GoogleOther, Google-CloudVertexBot and Google-Extended have a token each and fall back to `*`, as
 * crawlers of all other operators do.
 */
export const robotsFamilies: readonly RobotsFamily[] = [
  { names: /^Applebot$/i, follows: ['Googlebot'], source: 'https://support.apple.com/en-us/119829' },
  { names: /^(?:Googlebot-.+|Google-InspectionTool)$/i, follows: ['Googlebot'], source: googleCommon },
  { names: /^GoogleOther-.+$/i, follows: ['GoogleOther'], source: googleCommon },
  {
    names: /^(?:AdsBot-Google|AdsBot-Google-Mobile|APIs-Google|Mediapartners-Google)$/i,
    follows: [],
    ignoresDefault: true,
    source: googleSpecial,
  },
  {
    names: /^(?:Yandex.+|YaDirectFetcher)$/i,
    follows: ['Yandex'],
    source: 'https://yandex.com/support/webmaster/en/robot-workings/user-agent',
  },
  {
    names: /^bingbot$/i,
    follows: ['msnbot'],
    source: 'https://blogs.bing.com/webmaster/2010/06/28/bing-crawler-bingbot-on-the-horizon',
  },
]

/** The tokens whose groups a crawler obeys, the most specific first. The first with a group counts. */
export function robotsTokens(name: string): string[] {
  const family = robotsFamilies.find(({ names }) => names.test(name))
  const followed = [name, ...(family?.follows ?? [])]
  return family?.ignoresDefault === true ? followed : [...followed, '*']
}
