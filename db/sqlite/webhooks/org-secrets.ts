/** Each organization's signing secret in SQLite, sealed; the previous one signs too until its time is over. */
import { eq } from 'drizzle-orm'
import { StoreError } from '../../contract/errors.ts'
import type { OrgSecret, WebhookStore } from '../../contract/webhooks.ts'
import { appendAudit } from '../audit/append.ts'
import type { ReadContext, WriteContext } from '../threads/contexts.ts'
import { orgSecretTable as table } from './schema.ts'

type Command<K extends keyof WebhookStore> = Parameters<WebhookStore[K]>[0]

export function orgSecret({ db, orm }: WriteContext, command: Command<'orgSecret'>): OrgSecret {
  const { orgId, sealedIfNone, audit } = command
  const made = orm
    .insert(table)
    .values({ orgId, sealedSecret: sealedIfNone })
    .onConflictDoNothing()
    .returning({ orgId: table.orgId })
    .all()
  if (made.length > 0) appendAudit(db, audit)
  return requireSecret(orm, orgId)
}

export function findOrgSecret({ orm }: ReadContext, orgId: string): OrgSecret | null {
  return findSecret(orm, orgId)
}

export function rotateOrgSecret({ db, orm }: WriteContext, command: Command<'rotateOrgSecret'>): void {
  const { orgId, sealedSecret, previousUntilMs, audit } = command
  const before = requireSecret(orm, orgId)
  orm
    .update(table)
    .set({ sealedSecret, previousSealedSecret: before.sealedSecret, previousUntilMs })
    .where(eq(table.orgId, orgId))
    .run()
  appendAudit(db, audit)
}

function requireSecret(orm: WriteContext['orm'], orgId: string): OrgSecret {
  const found = findSecret(orm, orgId)
  if (found === null) throw new StoreError('not_found', `${orgId} has no signing secret`)
  return found
}

function findSecret(orm: WriteContext['orm'], orgId: string): OrgSecret | null {
  const found = orm.select().from(table).where(eq(table.orgId, orgId)).get()
  if (found === undefined) return null
  const { sealedSecret, previousSealedSecret, previousUntilMs } = found
  return { sealedSecret, previousSealedSecret, previousUntilMs }
}
