/** What a relay is told, and the defaults that keep a public endpoint from being abused. */
import { requireKey } from '../client/keys.ts'
import type { CompleteEvent } from '../client/event.ts'

/** Who a request turned out to come from, by your own authentication; only this makes it into events. */
export interface Identity {
  /** The verified identity. */
  subject?: string
  /** How it was proved, such as `sso` or `web-bot-auth`. */
  protocol?: string
  /** `verified` when left out. */
  trust?: 'verified' | 'linked'
}

/** The part of `createIntelExporter`'s result that a relay uses. */
export interface RelayExporter {
  export(event: CompleteEvent): boolean
  flush(timeoutMs?: number): Promise<boolean>
}

/** `Raw` is the request as the server hands it over: a `Request`, or Node's and Express's. */
export interface RelayOptions<Raw> {
  exporter: RelayExporter
  /** The publishable keys whose browsers may send. */
  publishableKey: string | string[]
  /** Pages that may send, such as https://shop.example; those of the relay's own host when left out. */
  origins?: string[]
  /** Put into every event, whatever the browser says. */
  siteId?: string
  identify?(request: Raw): Identity | null | Promise<Identity | null>
  /** The client's address, when the server does not hand it over or a proxy of yours stands in front. */
  clientAddress?(request: Raw): string | null | undefined
  /** Of one request, 262,144 by default. */
  bodyBytesMax?: number
  /** In one request, 200 by default. */
  eventsMax?: number
  /** Of one address, 600 by default; a burst may use a minute's share at once. */
  eventsPerMinute?: number
  /**
   * When to answer: `queued` (the default) as soon as the exporter has the events; `sent` only when the appliance has
   * them, for servers that stop after the answer.
   */
  answerAfter?: 'queued' | 'sent'
}

export interface RelayRules<Raw> extends Required<Omit<RelayOptions<Raw>, OptionalName>> {
  publishableKeys: Set<string>
  origins: Set<string> | null
  siteId: string | null
  identify: RelayOptions<Raw>['identify']
  clientAddress: RelayOptions<Raw>['clientAddress']
}

type OptionalName = 'publishableKey' | 'origins' | 'siteId' | 'identify' | 'clientAddress'

/** Throws on wrong options. */
export function relayRules<Raw>(options: RelayOptions<Raw>): RelayRules<Raw> {
  const keys = [options.publishableKey].flat().map((key) => requireKey('publishableKey', key, 'publishable'))
  return {
    exporter: options.exporter,
    publishableKeys: new Set(keys),
    origins: options.origins === undefined ? null : new Set(options.origins.map(originOf)),
    siteId: options.siteId ?? null,
    identify: options.identify,
    clientAddress: options.clientAddress,
    bodyBytesMax: options.bodyBytesMax ?? 256 * 1024,
    eventsMax: options.eventsMax ?? 200,
    eventsPerMinute: options.eventsPerMinute ?? 600,
    answerAfter: options.answerAfter ?? 'queued',
  }
}

function originOf(text: string): string {
  try {
    const { origin } = new URL(text)
    if (origin !== 'null') return origin
  } catch {
    // Said below.
  }
  throw new TypeError(`origins must be addresses such as https://shop.example, not ${text}`)
}
