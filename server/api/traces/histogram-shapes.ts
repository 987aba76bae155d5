/** What the chart above the Logs table is told; the dashboard takes this type. */
export interface Histogram {
  since: string // the first step begins here
  until: string // the last step ends here
  stepMs: number // about, where days and months differ
  edges: number[] // in milliseconds: where the steps begin, and where the last one ends
  counts: { [outcome: string]: number[] } // by step
  total: number
  complete: boolean // false: steps before `lookedSince` hold events that were not looked at
  lookedSince: string
}
