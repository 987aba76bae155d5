/** Says why a pending delivery waits, for the command line and the dashboard. */

/** The member `waitingFor` of a pending delivery (contract §9). */
export type WaitingFor =
  | { reason: 'response'; until: string } // an attempt is running
  | { reason: 'retry'; until: string }
  | { reason: 'paused' } // its endpoint
  | { reason: 'lane'; running: number; limit: number } // other deliveries to the same receiver
  | { reason: 'slot'; running: number; limit: number } // deliveries to all receivers
  | { reason: 'lease'; node: string | null; until: string } // null: an attempt whose outcome is not recorded
  | { reason: 'replay' } // it was replayed, and the next run sends it
  | { reason: 'dispatch' } // the next run sends it

/** One sentence for people; `time` formats an ISO time. */
export function waitingSentence(waits: WaitingFor, time: (iso: string) => string): string {
  switch (waits.reason) {
    case 'response':
      return `Waits for the response of the receiver until ${time(waits.until)}`
    case 'retry':
      return `Retries at ${time(waits.until)}`
    case 'paused':
      return 'The endpoint is paused'
    case 'lane':
      return `Waits for other deliveries to this receiver: ${waits.running} of ${waits.limit} attempts are running`
    case 'slot': {
      const { running, limit } = waits
      const reserved =
        running < limit ? `, and the other ${limit - running} are reserved for other receivers` : ''
      return `Waits for a free slot: ${running} of ${limit} attempts are running${reserved}`
    }
    case 'lease':
      return waits.node === null
        ? `The outcome of its last attempt is not recorded. It is sent again after ${time(waits.until)}`
        : `Node ${waits.node} delivers it until ${time(waits.until)}`
    case 'replay':
      return 'Replayed. The next run of the dispatcher sends it'
    case 'dispatch':
      return 'Due. The next run of the dispatcher sends it'
  }
}
