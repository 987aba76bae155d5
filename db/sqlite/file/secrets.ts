/** Secrets of this store, each made once and then always the same. */
import { eq } from 'drizzle-orm'
import { randomBytes } from 'node:crypto'
import { StoreError } from '../../contract/errors.ts'
import type { WriteContext } from '../threads/contexts.ts'
import { storeSecret } from '../identity/schema.ts'

const secretBytes = 32

export function secret({ orm }: WriteContext, name: string): string {
  orm
    .insert(storeSecret)
    .values({ name, value: randomBytes(secretBytes).toString('hex') })
    .onConflictDoNothing()
    .run()
  const found = orm.select().from(storeSecret).where(eq(storeSecret.name, name)).get()
  if (found === undefined) throw new StoreError('internal', `the secret ${name} was not kept`)
  return found.value
}
