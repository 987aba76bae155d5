/** The session as the dashboard sees it. */
import type { SignInView } from '../../../db/contract/store.ts'
import { addressOf } from '../../http/address.ts'
import { contextOf } from '../../http/request-context.ts'
import { sha256Hex } from '../../ids.ts'
import type { Parts } from '../../services.ts'

/** Right after its cookie was made. */
export async function sessionOf(parts: Parts, request: Request, cookie: string) {
  const token = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
  const view = await parts.store.signIns.find(sha256Hex(token))
  if (!view) throw new Error('a sign-in just made is not there')
  return sessionView(parts, request, view)
}

export function sessionView(
  { version, ...where }: Parts,
  request: Request,
  { account, org, role, lacksSecondFactor }: SignInView,
) {
  const { secure, local } = contextOf(request)
  return {
    account: { id: account.id, email: account.email, operator: account.operator },
    org: { id: org.id, slug: org.slug, name: org.name },
    role,
    lacksSecondFactor, // until it has one, only the account's own settings answer
    version,
    ingestUrl: addressOf(request, where),
    insecure: !secure && !local,
  }
}
