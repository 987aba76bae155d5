/** The session as the dashboard sees it. */
import type { SignInView, Store } from '../../../db/contract/store.ts'
import { addressOf } from '../../http/address.ts'
import { contextOf } from '../../http/request.ts'
import { sha256Hex } from '../../ids.ts'

export interface SessionViewServices {
  store: Store
  version: string
  publicUrl: string | null
  basePath: string
}

/** The session of a cookie that was just created. */
export async function sessionOf(services: SessionViewServices, request: Request, cookie: string) {
  const token = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
  const view = await services.store.signIns.find(sha256Hex(token))
  if (!view) throw new Error('invariant: a new sign-in is stored')
  return sessionView(services, request, view)
}

export function sessionView(
  { version, ...where }: SessionViewServices,
  request: Request,
  { account, org, role, lacksSecondFactor }: SignInView,
) {
  const { secure, local } = contextOf(request)
  return {
    account: { id: account.id, email: account.email, operator: account.operator },
    org: { id: org.id, slug: org.slug, name: org.name },
    role,
    lacksSecondFactor, // until it has one, only routes of the account itself respond
    version,
    ingestUrl: addressOf(request, where),
    insecure: !secure && !local,
  }
}

export type SessionView = ReturnType<typeof sessionView>
