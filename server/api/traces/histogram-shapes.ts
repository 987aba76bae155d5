/** The response behind the chart above the Logs table; the dashboard imports this type. */
export interface Histogram {
  since: string // start of the first step
  until: string // end of the last step
  stepMs: number // approximate where days and months differ
  edges: number[] // in milliseconds: the starts of the steps, and the end of the last
  counts: { [outcome: string]: number[] } // by step
  total: number
  complete: boolean // false: steps before `lookedSince` contain events that were not counted
  lookedSince: string
}
