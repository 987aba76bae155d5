/** What a store needs of its engine's threads, and the methods that send verbs to them. */
import { StoreError } from '../../contract/errors.ts'
import type { Histogram } from '../../contract/histogram.ts'
import type { Following } from '../../contract/explore.ts'
import type { Upkeep } from '../../contract/nodes.ts'
import type { MaintenanceReason } from '../../contract/operations.ts'
import type { AppendOutcome, Parcel } from '../threads/protocol.ts'
import type { Port } from '../threads/port.ts'
import type { Sliced } from '../slices.ts'
import type { ReadVerbs, WriteVerbs } from '../verbs.ts'

export interface Threads {
  /** The names of the verbs, as the threads reported them when they opened. */
  verbs: readonly string[]
  /** Whether a verb runs on the writer. */
  writes(verb: string): boolean
  write(verb: string, command: unknown): Promise<unknown>
  read(verb: string, query: unknown, following?: Following): Promise<unknown>
  append(parcels: Parcel[]): Promise<AppendOutcome[]>
  /** The writer stores all appends that have arrived as one group, so they need not wait here. */
  gathers?: boolean
  /** Whether other nodes append to the same organizations at the moment. Missing: there are none. */
  othersAppend?(): boolean
  commitTimes(): Promise<Histogram>
  /** As `RetentionStore.maintain`. */
  maintain(reason: MaintenanceReason): Promise<boolean>
  /** Rejects with `displaced` or `deleted` when a file of the folder was deleted or replaced. */
  requirePresent(): Promise<void>
  /** Missing when the writer does all due work. */
  upkeep?(): Upkeep
  /** Readers first, then the writer. */
  close(): Promise<void>
}

/** Opens a reader as the only thread of a store, or closes it if that fails. Writes are rejected. */
export async function readThreads(reader: Port, opening: unknown): Promise<Threads> {
  const close = () => closePorts([reader])
  const verbs = (await reader.ask('open', opening).catch(async (error: unknown) => {
    await close()
    throw error
  })) as string[]
  const refuse = () => Promise.reject(new StoreError('read_only', 'this command only reads the data'))
  return {
    verbs,
    writes: (verb) => !verbs.includes(verb),
    write: refuse,
    read: reader.ask,
    append: refuse,
    maintain: refuse,
    requirePresent: async () => undefined,
    commitTimes: refuse,
    close,
  }
}

export async function closePorts(ports: readonly Port[]): Promise<void> {
  await Promise.allSettled(ports.map((port) => port.ask('close', null)))
  await Promise.all(ports.map((port) => port.ended))
}

/** Makes a method of each verb of a noun, which runs it on its thread: `accounts.find` is `remote('accounts').find`. */
type Verbs = ReadVerbs & WriteVerbs
type Verb = keyof Verbs
type Noun = Verb extends infer V ? (V extends `${infer N}.${string}` ? N : never) : never

export type CommandOf<F> = F extends (context: never) => unknown
  ? []
  : F extends (context: never, command: infer C) => unknown
    ? [command: C]
    : never
export type ResultOf<F> = F extends (context: never, command: never) => infer R
  ? R extends Sliced<infer T>
    ? T
    : Awaited<R>
  : never
type Remote<V extends Verb> = (...command: CommandOf<Verbs[V]>) => Promise<ResultOf<Verbs[V]>>
export type Nouns = {
  [N in Noun]: { [V in Verb as V extends `${N}.${infer Name}` ? Name : never]: Remote<V> }
}

/** Runs a verb of the store by name. */
export type CallVerb = <V extends Verb>(verb: V, ...command: CommandOf<Verbs[V]>) => ReturnType<Remote<V>>

/** The methods are own properties, so that they survive a spread. */
export function remote<N extends Noun>(call: CallVerb, verbs: readonly string[], noun: N): Nouns[N] {
  const method = (name: string) => (command?: unknown, following?: Following) =>
    (call as (verb: string, command?: unknown, following?: Following) => unknown)(
      `${noun}.${name}`,
      command,
      following,
    )
  const names = verbs.filter((verb) => verb.startsWith(`${noun}.`)).map((verb) => verb.slice(noun.length + 1))
  const methods = Object.fromEntries(names.map((name) => [name, method(name)]))
  // Verbs that are not listed write, which their thread rejects in a read-only folder.
  return new Proxy(methods, {
    get: (target, name) => target[String(name)] ?? (typeof name === 'string' ? method(name) : undefined),
  }) as unknown as Nouns[N]
}
