/** What the site itself reports when it is rolled out: its policies, and once a week its tools. */
import type { Step } from './event.ts'
import { randomFrom } from './random.ts'
import { demoTools } from './tools.ts'

/** Steps without an agent: nobody visits, the site says what it now offers. `toolsMax` keeps it in scale. */
export function deployment(day: number, toolsMax: number): Step[] {
  const weekday = (day + 4) % 7
  if (weekday === 0 || weekday === 6) return []
  const random = randomFrom('deployment', day)
  const steps: Step[] = [
    {
      type: 'authz.policies_set',
      outcome: 'success',
      afterMs: random.whole(0, 1_800_000),
      durationMs: random.whole(3, 20),
      metadata: { demo: true, page: '/' },
    },
  ]
  if (weekday !== 2) return steps
  for (const tool of demoTools.slice(0, Math.min(40, toolsMax))) {
    steps.push({
      type: 'tool.registered',
      outcome: 'success',
      afterMs: random.whole(2, 30),
      tool: tool.name,
      metadata: { demo: true, page: tool.page },
    })
  }
  return steps
}
