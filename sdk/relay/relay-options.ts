/** The options of a relay, with defaults that protect a public endpoint. */
import { requireKey } from '../client/keys.ts'
import type { CompleteEvent } from '../client/event.ts'

/** The sender of a request, from your own authentication. It replaces any identity the browser claims. */
export interface Identity {
  /** The verified subject. */
  subject?: string
  /** The protocol that proved it, such as `sso` or `web-bot-auth`. */
  protocol?: string
  /** Default: `verified`. */
  trust?: 'verified' | 'linked'
}

/** The part of `IntelExporter` that a relay uses. */
export interface RelayExporter {
  export(event: CompleteEvent): boolean
  flush(timeoutMs?: number): Promise<boolean>
}

/** `Raw` is the request type of the server: Fetch, Node.js or Express. */
export interface RelayOptions<Raw> {
  exporter: RelayExporter
  /** Accepted publishable keys. */
  publishableKey: string | string[]
  /** Accepted origins, such as https://shop.example. Default: the host of the relay. */
  origins?: string[]
  /** Overrides the site of every event. */
  siteId?: string
  identify?(request: Raw): Identity | null | Promise<Identity | null>
  /** The client's address, when the server does not provide it or is behind a proxy. */
  clientAddress?(request: Raw): string | null | undefined
  /** Maximum size of a request. Default: 262,144. */
  bodyBytesMax?: number
  /** Maximum number of events per request. Default: 200. */
  eventsMax?: number
  /** Rate limit per address; bursts up to this number. Default: 600. */
  eventsPerMinute?: number
  /**
   * When to respond: `queued` (default) when the exporter has the events, `sent` when the appliance has them. Use
   * `sent` where code stops running after the response.
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

/** Throws on invalid options. */
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
    // Reported below.
  }
  throw new TypeError(`origins must be URLs such as https://shop.example, not ${text}`)
}
