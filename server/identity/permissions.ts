/** Which roles have which permission on the dashboard (DESIGN.md explains them). */
import { AppError } from '../errors.ts'
import { contextOf } from '../http/request.ts'
import type { Role } from '../../db/contract/store.ts'
import type { SignIns } from './sign-in/sign-ins.ts'

const everybody = ['owner', 'admin', 'analyst', 'viewer'] as const
const readers = ['owner', 'admin', 'analyst'] as const
const managers = ['owner', 'admin'] as const
const owners = ['owner'] as const

const table = {
  'audit.read': readers,
  'audit.export': readers,
  'events.export': readers,
  'data.manage': owners,
  'key.manage': managers,
  'org.manage': owners,
  'org.protect': managers,
  'people.manage': managers,
  'share.manage': managers,
  'site.read': everybody,
  'site.manage': managers,
  'view.manage': readers,
} as const satisfies Record<string, readonly Role[]>

type Permission = keyof typeof table

export function rolesOf(permission: Permission): readonly Role[] {
  return table[permission]
}

/** Throws 403 unless an operator of the appliance is signed in; returns the actor for the audit trail. */
export async function requireOperator(signIns: SignIns, request: Request): Promise<string> {
  const { account } = await signIns.require(request)
  contextOf(request).permit = () => isStillOperator(signIns, request)
  if (account.operator) return `user:${account.id}`
  throw new AppError('forbidden', 'Only operators of the appliance can do this.', { reason: 'wrong_role' })
}

async function isStillOperator(signIns: SignIns, request: Request): Promise<boolean> {
  try {
    return (await signIns.require(request)).account.operator
  } catch (error) {
    if (error instanceof AppError) return false
    throw error
  }
}
