/** /share/{token}: a page for anybody with the link. /api/share-links: the links of an organization. */
import { Elysia } from 'elysia'
import { dashboardLinks } from '../http/page-frame.ts'
import { senderName } from '../http/address.ts'
import { contextOf, readQuery } from '../http/request.ts'
import { json } from '../http/response.ts'
import { readFields } from '../http/validate.ts'
import { rolesOf } from '../identity/permissions.ts'
import { readContent, type Shown } from './content.ts'
import { createLink, listLinks, openLink, revokeLink, type ShareOpens } from './links.ts'
import { endedPage, sharedPage, sharedPolicy } from './page.ts'
import type { Store } from '../../db/contract/store.ts'
import type { Clock } from '../clock.ts'
import type { Assets } from '../http/assets.ts'
import type { LinkThrottle } from '../identity/sign-in/throttle.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'

interface ShareRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
  linkThrottle: LinkThrottle
  shareOpens: ShareOpens
  assets: Assets
}

const unparsed = { parse: 'none' } as const

export function shareRoutes(services: ShareRoutesServices) {
  const { store, clock, signIns, linkThrottle, shareOpens, assets } = services
  const manager = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('share.manage'))
    readQuery(request, {})
    return { orgId: org.id, actor: `user:${account.id}`, accountId: account.id }
  }
  const read = recently(clock, (orgId, content) => readContent(store, orgId, content, clock.now()))
  return new Elysia()
    .get('/share/:token', async ({ request, params }) => {
      const opened = await openLink(services, params.token)
      const links = dashboardLinks(assets)
      if (opened === null) {
        linkThrottle.unknown(senderName(contextOf(request).sender().address))
        return page(404, endedPage(links), [])
      }
      const { link, content } = opened
      const shown = await read(link.id, link.orgId, content)
      shareOpens.note(link)
      const { name, expiresAtMs } = link
      const html = sharedPage({ name, content, shown, expiresAtMs, now: clock.now(), links })
      return page(200, html, content.frameOrigins)
    })
    .get('/api/share-links', async ({ request }) => {
      const { orgId } = await manager(request)
      return json({ links: await listLinks(services, orgId) })
    })
    .post(
      '/api/share-links',
      async ({ request }) => {
        const actor = await manager(request)
        const fields = await readFields(request, {
          ...({ name: 'text', page: 'text', search: 'text', panels: 'texts?', events: 'flag?' } as const),
          ...({ identities: 'flag?', days: 'number', frameOrigins: 'texts?' } as const),
        })
        return json(await createLink(services, actor, fields), 201)
      },
      unparsed,
    )
    .post(
      '/api/share-links/:id/revoke',
      async ({ request, params }) => {
        const actor = await manager(request)
        await readFields(request, {})
        await revokeLink(services, actor, params.id)
        return new Response(null, { status: 204 })
      },
      unparsed,
    )
}

function page(status: number, html: string, frameOrigins: string[]): Response {
  return new Response(html, {
    status,
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': sharedPolicy(frameOrigins),
      'x-robots-tag': 'noindex',
    },
  })
}

const recentMs = 5_000
const recentMax = 200

/**
 * Remembers what a link showed for a few seconds, so that a link that many open at once is counted once, however long
 * counting takes.
 */
function recently(
  clock: Clock,
  find: (orgId: string, content: Parameters<typeof readContent>[2]) => Promise<Shown>,
) {
  const answers = new Map<string, { atMs: number | null; shown: Promise<Shown> }>() // null: being read
  return (id: string, orgId: string, content: Parameters<typeof readContent>[2]): Promise<Shown> => {
    const cachedAnswer = answers.get(id)
    const now = clock.now()
    if (
      cachedAnswer !== undefined &&
      (cachedAnswer.atMs === null || Math.abs(now - cachedAnswer.atMs) < recentMs)
    )
      return cachedAnswer.shown
    const answer = { atMs: null as number | null, shown: find(orgId, content) }
    answers.delete(id)
    answers.set(id, answer)
    const [oldest] = answers.size > recentMax ? answers.keys() : []
    if (oldest !== undefined) answers.delete(oldest)
    answer.shown.then(
      () => void (answer.atMs = clock.now()),
      () => void answers.delete(id),
    )
    return answer.shown
  }
}
