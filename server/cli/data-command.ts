/**
 * Commands that work on the data: parameters from options, work where the folder is held, the answer as text. Also
 * finds the organizations, accounts and keys that commands name.
 */
import { systemClock } from '../clock.ts'
import { listenText, reachableHost, type ListenAddress } from '../http/address.ts'
import { openStoreAccess, type StoreAccess } from '../runtime/store-access.ts'
import { keyRingOf, linkOptions, sharedDatabaseOf } from './options.ts'
import { printAnswer, type Answer } from './print.ts'
import { AppError } from '../errors.ts'
import { findAccountByEmail } from '../identity/sign-in/email.ts'
import { readEmail, type Acting } from '../identity/people/members.ts'
import { textOf, type Params, type Work, type WorkTable } from '../runtime/work.ts'
import type { Command, CommandText, Invocation, KnownCommand } from './command.ts'
import type { Options } from './option.ts'
import type { Org, Store } from '../../db/contract/store.ts'

interface DataCommand<O extends Options> extends CommandText {
  options: O
  access: 'read' | 'write' | 'create'
  params(invocation: Invocation<O>): Params | Promise<Params>
  work: Work
  print(answer: Answer): string
}

export function dataCommand<const O extends Options>(definition: DataCommand<O>): Command {
  const { params, work, print, ...commandFields } = definition
  return {
    ...commandFields,
    work: { '': work },
    async run(invocation) {
      const { values, command } = invocation
      const callParams = await params(invocation as unknown as Invocation<O>)
      const dryRun = (values as { 'dry-run'?: boolean })['dry-run'] === true
      const answer = await withData(
        invocation,
        dryRun && definition.access === 'create' ? 'write' : definition.access,
        (data) => data.call(command.name, callParams),
      )
      printAnswer(values, answer as Answer, print)
      return 0
    },
  }
}

/** Opens the data for `use` and closes it after. */
export async function withData<T>(
  invocation: Pick<Invocation, 'values' | 'commands'>,
  access: 'read' | 'write' | 'create',
  use: (data: StoreAccess) => Promise<T>,
): Promise<T> {
  const { values, commands } = invocation
  const data = await openStoreAccess({
    dataDir: values['data-dir'],
    keyRing: () => keyRingOf(values),
    shared: sharedDatabaseOf(values),
    baseUrl: baseUrlOf(values as LinkValues),
    clock: systemClock,
    work: workTable(commands),
    access,
  })
  try {
    return await use(data)
  } finally {
    await data.close()
  }
}

/** All work of all commands: the table of the control socket. */
export function workTable(commands: readonly KnownCommand[]): WorkTable {
  return new Map(
    commands.flatMap(({ name, work = {} }) =>
      Object.entries(work).map(([step, run]) => [step === '' ? name : `${name} ${step}`, run] as const),
    ),
  )
}

interface LinkValues {
  listen?: ListenAddress
  'public-url'?: string | null
  'base-path'?: string
}

/** Where the dashboard would be, for links of commands without a running server. */
function baseUrlOf(values: LinkValues): string {
  const { host, ...address } = values.listen ?? linkOptions.listen.read(linkOptions.listen.default)
  const hostAndPort =
    address.unix === undefined ? listenText({ ...address, host: reachableHost(host) }) : host
  return `${values['public-url'] ?? `http://${hostAndPort}`}${values['base-path'] ?? ''}`
}

export async function requireOrg(store: Pick<Store, 'orgs'>, idOrSlug: string): Promise<Org> {
  const org = await store.orgs.find(idOrSlug)
  if (org) return org
  throw new AppError('not_found', `No organization "${idOrSlug}".`, { hint: 'sightglass org list' })
}

export async function requireAccount(store: Pick<Store, 'accounts'>, params: Params) {
  const email = readEmail(textOf(params, 'email'))
  const account = await findAccountByEmail(store, email)
  if (account) return account
  throw new AppError('not_found', `No account with the email ${email}.`, { hint: 'sightglass account list' })
}

/** The command line in the organization of `params`: it may do everything. */
export async function machineIn(store: Pick<Store, 'orgs'>, params: Params): Promise<Acting> {
  const { id } = await requireOrg(store, textOf(params, 'org'))
  return { orgId: id, actor: 'cli', role: 'machine' }
}

/** The organization of a key. `idOrSlug` only narrows the search, because ids are unique. */
export async function orgOfKey(
  store: Pick<Store, 'orgs' | 'keys'>,
  keyId: string,
  idOrSlug: string | null,
): Promise<string> {
  const orgs = idOrSlug === null ? await store.orgs.list() : [await requireOrg(store, idOrSlug)]
  for (const org of orgs) {
    if ((await store.keys.list({ orgId: org.id })).some((key) => key.id === keyId)) return org.id
  }
  throw new AppError('not_found', `No key "${keyId}".`, { hint: 'sightglass key list' })
}
