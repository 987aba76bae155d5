/**
 * Host names of addresses, confirmed by looking them up again (forward-confirmed reverse DNS), as operators without
 * address lists document it. Only with --evidence-dns: nothing else here asks another machine.
 */
import { Resolver } from 'node:dns/promises'
import { parseAddress } from '../../sdk/judge/networks.ts'
import type { Clock } from '../clock.ts'
import { noteCall } from './outbound.ts'
import { hourMs } from '../../db/contract/units.ts'

export interface HostNames {
  /** Names that resolve back to the address. Undefined when they are not known, or could not be looked up. */
  of(address: string): readonly string[] | undefined
  /** Looks up the addresses that are not known yet. Never rejects. */
  lookUp(addresses: ReadonlySet<string>): Promise<void>
}

export type NameResolver = Pick<Resolver, 'reverse' | 'resolve4' | 'resolve6'>

const answerMs = 24 * hourMs
const failureMs = hourMs / 6
const addressesMax = 100_000
const atOnce = 32
const namesMax = 4
const lookupMs = 5_000

export function startHostNames(clock: Clock, resolver: NameResolver = systemResolver()): HostNames {
  const namesByAddress = new Map<string, { names: readonly string[] | undefined; untilMs: number }>()

  async function lookUpOne(address: string): Promise<void> {
    const names = await limitTime(lookupMs, confirmedNames(resolver, address))
    if (namesByAddress.size >= addressesMax) namesByAddress.delete(namesByAddress.keys().next().value!)
    namesByAddress.set(address, {
      names,
      untilMs: clock.now() + (names === undefined ? failureMs : answerMs),
    })
  }

  return {
    of: (address) => namesByAddress.get(address)?.names,
    async lookUp(addresses) {
      const due = [...addresses].filter(
        (address) => (namesByAddress.get(address)?.untilMs ?? 0) <= clock.now(),
      )
      const worker = async (): Promise<void> => {
        for (let address = due.pop(); address !== undefined; address = due.pop()) await lookUpOne(address)
      }
      await Promise.all(Array.from({ length: atOnce }, worker))
    },
  }
}

function systemResolver(): NameResolver {
  return new Resolver({ timeout: 2_000, tries: 2 })
}

async function limitTime<T>(limitMs: number, work: Promise<T>): Promise<T | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), limitMs)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * An address without a name is unknown rather than proved false, because a resolver that is away answers the same. A
 * name that does not lead back is false: the owner of an address may give it any name.
 */
async function confirmedNames(resolver: NameResolver, address: string): Promise<string[] | undefined> {
  noteCall({ what: 'name lookup', host: address, address: null, port: 53 })
  const plain = address.replace(/^::ffff:(?=[\d.]+$)/i, '')
  const names = await resolver.reverse(plain).catch(() => [])
  if (names.length === 0) return undefined
  const isOwn = (resolvedAddress: string): boolean => wordsOf(resolvedAddress) === wordsOf(plain)
  const confirmed = await Promise.all(
    names.slice(0, namesMax).map(async (name) => {
      const resolve = plain.includes(':') ? resolver.resolve6(name) : resolver.resolve4(name)
      return (await resolve.catch(() => [])).some(isOwn)
    }),
  )
  return names.filter((_, index) => confirmed[index])
}

function wordsOf(address: string): string {
  const words = new Uint32Array(4)
  return parseAddress(address, words) ? words.join() : address
}
