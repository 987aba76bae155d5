/** Where the dashboard lives below its host: the server writes it into the page; links and calls begin with it. */
import { options, type VNode } from 'preact'

const inBrowser = typeof document !== 'undefined'

/** Such as /sightglass; nothing for the whole host. */
export const basePath = inBrowser
  ? (document.querySelector<HTMLMetaElement>('meta[name="base-path"]')?.content ?? '')
  : ''

/** Where this appliance answers, as the reader of this page reaches it. */
export function ownAddress(): string {
  return `${window.location.origin}${basePath}`
}

/** The path that pages know, out of one of the browser. */
export function withoutBase(path: string, base = basePath): string {
  if (base === '' || path === base) return path === base && base !== '' ? '/' : path
  return path.startsWith(`${base}/`) ? path.slice(base.length) : path
}

/** Pages write links as if the whole host were theirs; what is drawn begins with the base path. */
export function linkBelowBase(base = basePath): void {
  if (base === '') return
  const before = options.vnode
  options.vnode = (vnode: VNode) => {
    if (vnode.type === 'a') {
      const props = vnode.props as { href?: unknown }
      const { href } = props
      if (typeof href === 'string' && /^\/(?!\/)/.test(href)) props.href = base + href
    }
    before?.(vnode)
  }
}
