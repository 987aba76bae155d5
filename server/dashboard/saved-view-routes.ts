/** /api/views: the saved views of the Logs page, shared by an organization. Every change has an audit entry. */
import { Elysia } from 'elysia'
import { rolesOf } from '../identity/permissions.ts'
import { json } from '../http/response.ts'
import { readFields, wrongField } from '../http/validate.ts'
import { readQuery } from '../http/request.ts'
import { StoreError } from '../../db/contract/errors.ts'
import { auditEntry, type Actor } from '../audit/entry.ts'
import { isoTime, type Clock } from '../clock.ts'
import { AppError } from '../errors.ts'
import { newId } from '../ids.ts'
import { limits } from '../limits.ts'
import { nameProblem } from '../text/names.ts'
import type { Json, SavedView, Store } from '../../db/contract/store.ts'
import type { SignIns } from '../identity/sign-in/sign-ins.ts'

export interface ViewRoutesServices {
  store: Store
  clock: Clock
  signIns: SignIns
}

const unparsed = { parse: 'none' } as const

export function viewRoutes(services: ViewRoutesServices) {
  const { store, signIns } = services
  const manager = async (request: Request) => {
    const { org, account } = await signIns.require(request, rolesOf('view.manage'))
    readQuery(request, {})
    return { orgId: org.id, actor: `user:${account.id}`, accountId: account.id }
  }
  return new Elysia()
    .get('/api/views', async ({ request }) => {
      const { org } = await signIns.require(request)
      readQuery(request, {})
      return json({ views: (await store.views.list(org.id)).map(viewOf) })
    })
    .post(
      '/api/views',
      async ({ request }) => {
        const actor = await manager(request)
        const fields = await readFields(request, { name: 'text', search: 'text' })
        return json({ view: viewOf(await createView(services, actor, fields)) }, 201)
      },
      unparsed,
    )
    .patch(
      '/api/views/:id',
      async ({ request, params }) => {
        const actor = await manager(request)
        const fields = await readFields(request, { name: 'text?', search: 'text?' })
        return json({ view: viewOf(await changeView(services, actor, params.id, fields)) })
      },
      unparsed,
    )
    .delete(
      '/api/views/:id',
      async ({ request, params }) => {
        await deleteView(services, await manager(request), params.id)
        return json({ ok: true })
      },
      unparsed,
    )
}

interface Services {
  store: Pick<Store, 'views'>
  clock: Clock
}

const viewOf = ({ id, name, search, createdBy, createdAtMs }: SavedView) => ({
  id,
  name,
  search,
  createdBy,
  createdAt: isoTime(createdAtMs),
})

async function createView(
  { store, clock }: Services,
  { accountId, ...actor }: Actor & { accountId: string },
  fields: { name: string; search: string },
): Promise<SavedView> {
  const view: SavedView = {
    id: newId('view'),
    orgId: actor.orgId,
    name: nameOf(fields.name),
    search: searchOf(fields.search),
    createdBy: accountId,
    createdAtMs: clock.now(),
  }
  const metadata = { name: view.name, search: view.search }
  const audit = auditEntry(actor, { action: 'view.created', target: view.id, metadata }, clock.now())
  await explainConflict(
    view.name,
    store.views.create({ view, viewsMax: limits.viewsMax, audit }),
    async () => {
      const views = await store.views.list(actor.orgId)
      return views.length >= limits.viewsMax && !views.some(({ name }) => name === view.name)
    },
  )
  return view
}

/** Renames a view, or replaces its filters. */
async function changeView(
  { store, clock }: Services,
  actor: Actor,
  id: string,
  fields: { name?: string | undefined; search?: string | undefined },
): Promise<SavedView> {
  const previousView = await viewWith(store, actor.orgId, id)
  const newFields = {
    name: fields.name === undefined ? previousView.name : nameOf(fields.name),
    search: fields.search === undefined ? previousView.search : searchOf(fields.search),
  }
  const metadata: { [name: string]: Json } = {
    before: { name: previousView.name, search: previousView.search },
    after: newFields,
  }
  const action = newFields.search === previousView.search ? 'view.renamed' : 'view.changed'
  const audit = auditEntry(actor, { action, target: id, metadata }, clock.now())
  await explainConflict(newFields.name, store.views.change({ orgId: actor.orgId, id, ...newFields, audit }))
  return { ...previousView, ...newFields }
}

async function deleteView({ store, clock }: Services, actor: Actor, id: string): Promise<void> {
  const { name, search } = await viewWith(store, actor.orgId, id)
  const act = { action: 'view.deleted', target: id, metadata: { name, search } }
  await store.views.remove({ orgId: actor.orgId, id, audit: auditEntry(actor, act, clock.now()) })
}

async function viewWith(store: Services['store'], orgId: string, id: string): Promise<SavedView> {
  const view = (await store.views.list(orgId)).find((candidate) => candidate.id === id)
  if (view === undefined) throw new AppError('not_found', 'No saved view has this id.')
  return view
}

/** The error for the rule that a conflict broke. */
async function explainConflict(name: string, work: Promise<void>, isFull = async () => false): Promise<void> {
  try {
    await work
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'conflict') throw error
    if (await isFull()) {
      throw new AppError(
        'conflict',
        `The organization has reached its limit of ${limits.viewsMax} saved views.`,
        {
          hint: 'Delete an unused view, then save this one.',
        },
      )
    }
    throw new AppError('conflict', `A saved view named "${name}" already exists.`, {
      hint: 'Choose another name, or replace that view.',
    })
  }
}

function nameOf(text: string): string {
  const name = text.trim()
  const problem = nameProblem(name, { charsMax: limits.viewNameCharsMax })
  if (problem !== null) throw wrongField('name', `The name ${problem}.`)
  return name
}

/** The query string of a Logs URL. It is validated when the view is opened, like any URL. */
function searchOf(search: string): string {
  if (search !== '' && !/^\?[!-~]+$/.test(search))
    throw wrongField('search', 'search must be a query string that starts with a question mark, or empty')
  if (search.length > limits.viewSearchCharsMax)
    throw wrongField('search', `search must have at most ${limits.viewSearchCharsMax} characters`, 'too_long')
  return search
}
