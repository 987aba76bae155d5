/** Which roles may do what on the dashboard: the one table, explained in DESIGN.md beside it. */
import type { Role } from '../../db/contract/store.ts'

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
  'site.read': everybody,
  'site.manage': managers,
  'view.manage': readers,
} as const satisfies Record<string, readonly Role[]>

export type Permission = keyof typeof table

export function rolesOf(permission: Permission): readonly Role[] {
  return table[permission]
}
