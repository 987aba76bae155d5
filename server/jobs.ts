/** Every scheduled job of the appliance, in one list. */
import type { Store } from '../db/store.ts'
import type { DiskWatch } from './health/disk.ts'
import type { Job } from './clockwork.ts'
import type { LastUses } from './keys/last-use.ts'
import { limits } from './limits.ts'
import type { Webhooks } from './webhooks/start.ts'

interface JobParts {
  store: Store
  lastUses: LastUses
  disk: DiskWatch
  webhooks: Webhooks
  dispatchCron: string
}

export function jobTable({ store, lastUses, disk, webhooks, dispatchCron }: JobParts): Job[] {
  return [
    { id: 'disk-watch', schedule: '*/2 * * * * *', run: () => disk.look() },
    { id: 'key-last-use', schedule: '30 * * * * *', run: () => lastUses.flush() },
    {
      id: 'sign-in-prune',
      schedule: '0 17 * * * *',
      run: async (now) => void (await store.signIns.prune(now, limits.signInIdleMs)),
    },
    { id: 'webhook-dispatch', schedule: dispatchCron, run: webhooks.run },
    { id: 'webhook-prune', schedule: '0 23 * * * *', run: webhooks.prune },
  ]
}
