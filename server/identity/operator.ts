/** Lets operators of the appliance past: what they see and do belongs to no organization. */
import { AppError } from '../errors.ts'
import type { SignIns } from './sign-in/sign-ins.ts'

/** The actor of what the request is about to do, as the audit trail names it. */
export async function requireOperator(signIns: SignIns, request: Request): Promise<string> {
  const { account } = await signIns.require(request)
  if (account.operator) return `user:${account.id}`
  throw new AppError('forbidden', 'This is for operators of the appliance.', { reason: 'wrong_role' })
}
