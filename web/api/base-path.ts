/** The base path of the dashboard. The server writes it into the page; links and API calls begin with it. */
const inBrowser = typeof window !== 'undefined'

/** Such as "/sightglass"; empty at the root of the host. */
export const basePath = inBrowser
  ? (document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? '')
  : ''
