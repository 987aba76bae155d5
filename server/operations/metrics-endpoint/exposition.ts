/** Writes metrics in the text format of Prometheus, version 0.0.4. */
import type { Histogram } from '../../../db/rules/histogram.ts'

export type Labels = { [name: string]: string }

export interface Sample {
  labels?: Labels
  value: number
}

export interface Metric {
  name: string // sightglass_…, with its unit, counters with _total
  help: string
  kind: 'counter' | 'gauge'
  samples: Sample[]
}

export interface HistogramMetric {
  name: string // with _seconds
  help: string
  kind: 'histogram'
  samples: { labels?: Labels; histogram: Histogram }[]
}

export function exposition(metrics: (Metric | HistogramMetric)[]): string {
  return metrics.map(metricText).join('')
}

function metricText(metric: Metric | HistogramMetric): string {
  const { name, help, kind } = metric
  const head = `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n`
  const lines =
    metric.kind === 'histogram'
      ? metric.samples.flatMap(({ labels = {}, histogram }) => histogramLines(name, labels, histogram))
      : metric.samples.map(({ labels = {}, value }) => line(name, labels, value))
  return head + lines.join('')
}

/** Buckets are cumulative and in seconds there. */
function histogramLines(name: string, labels: Labels, { boundsMs, counts, sumMs }: Histogram): string[] {
  let total = 0
  const buckets = counts.map((count, at) => {
    total += count
    const bound = boundsMs[at]
    const le = bound === undefined ? '+Inf' : String(bound / 1_000)
    return line(`${name}_bucket`, { ...labels, le }, total)
  })
  return [...buckets, line(`${name}_sum`, labels, sumMs / 1_000), line(`${name}_count`, labels, total)]
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
