/** Announces the webhook verbs after which deliveries are due or endpoints may advance, to whoever dispatches. */

type Listener = (orgId: string | null) => void

const due = () => [null]
const advances = ({ orgId }: { orgId: string }) => [null, orgId]

const wakingVerbs: { [verb: string]: (command: never) => (string | null)[] } = {
  'webhooks.schedule': due,
  'webhooks.replay': due,
  'webhooks.replayDead': due,
  'webhooks.advance': ({ delivery }: { delivery: unknown }) => (delivery === null ? [] : [null]),
  'webhooks.startProbes': due,
  'webhooks.openIncident': due,
  'webhooks.resolveIncident': due,
  'webhooks.changeEndpoint': advances,
  'webhooks.resumeEndpoint': advances,
  'webhooks.moveEndpoint': advances,
}

export function wakes() {
  const listeners = new Set<Listener>()
  return {
    watch(listener: Listener): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    /** Called after the commit of a verb. */
    announce(verb: string, command: unknown): void {
      for (const orgId of wakingVerbs[verb]?.(command as never) ?? [])
        for (const listener of listeners) listener(orgId)
    },
  }
}
