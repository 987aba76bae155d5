/** People for API tests: accounts with a role in an organization, and calls that carry their cookie. */
import type { Org, Role } from '../../db/contract/store.ts'
import { auditEntry } from '../../server/audit/entry.ts'
import { hashPassword } from '../../server/identity/sign-in/password.ts'
import { newId } from '../../server/ids.ts'
import type { CallOptions, TestServer } from './server.ts'

export const password = 'a window in a vessel'

export interface Person {
  id: string
  email: string
  cookie: string
  call(path: string, options?: CallOptions): Promise<Response>
  post(path: string, body?: unknown): Promise<Response>
}

export async function makeAccount(
  { store, clock }: TestServer,
  org: Org,
  role: Role,
  { operator = false } = {},
): Promise<{ id: string; email: string }> {
  const id = newId('usr')
  const email = `${role}-${id
    .slice(-6)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, 'x')}@example.com`
  const act = { action: 'account.created', target: id, metadata: { email } }
  const now = clock.now()
  const account = { id, email, passwordHash: await hashPassword(password), operator, createdAtMs: now }
  const audit = auditEntry({ orgId: org.id, actor: 'cli' }, act, now)
  await store.accounts.create({ account, orgId: org.id, role, audit })
  return { id, email }
}

export async function person(
  server: TestServer,
  org: Org,
  role: Role,
  options?: { operator?: boolean },
): Promise<Person> {
  const account = await makeAccount(server, org, role, options)
  const answer = await server.call('/api/sign-in', { body: { email: account.email, password } })
  if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`)
  return { ...account, ...caller(server, cookieOf(answer)) }
}

export function cookieOf(answer: Response): string {
  return answer.headers.get('set-cookie')?.split(';')[0] ?? ''
}

export function caller(server: TestServer, cookie: string): Pick<Person, 'cookie' | 'call' | 'post'> {
  const call: Person['call'] = (path, options = {}) =>
    server.call(path, { ...options, headers: { cookie, ...options.headers } })
  return { cookie, call, post: (path, body = {}) => call(path, { method: 'POST', body }) }
}

export async function makeOrg({ store, clock }: TestServer, slug: string): Promise<Org> {
  const org: Org = { id: newId('org'), slug, name: slug, createdAtMs: clock.now() }
  const act = { action: 'org.created', target: org.id }
  await store.orgs.create({ org, audit: auditEntry({ orgId: 'org_system', actor: 'cli' }, act, clock.now()) })
  return org
}

/** Every audit entry except the dispatcher's, which runs at any time. New entries belong to the action under test. */
export async function auditCount({ store }: TestServer): Promise<number> {
  const counts = Object.entries(await store.audit.heads()).map(async ([orgId, head]) => {
    let ofJobs = 0
    let beforeSeq: number | null = head.count + 1 // excludes an entry added after the head was read
    do {
      const query = {
        orgId,
        limit: 200,
        beforeSeq,
        filter: { actors: ['system'], actions: ['webhook_endpoint.*'] },
      }
      const page: Awaited<ReturnType<typeof store.audit.list>> = await store.audit.list(query)
      ofJobs += page.entries.length
      beforeSeq = page.next
    } while (beforeSeq !== null)
    return head.count - ofJobs
  })
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}
