/** The form of a demo event: an ordinary trace event of the contract, marked as demo data. */
import type { AgentClass } from './cast.ts'

export const demoSiteId = 'demo-shop'

export interface DemoEvent {
  id: string
  siteId: string
  sessionId: string
  occurredAt: string
  type: string
  outcome: 'success' | 'error' | 'blocked'
  tool?: string
  durationMs?: number
  error?: string
  agent?: {
    class: AgentClass
    trust: string
    vendor: string
    name?: string
    purpose?: string
    confidence: number
    userAgent: string
    detectionVersion: string
  }
  policy?: { decision: 'allow' | 'deny' | 'review'; ruleId: string; reason?: string }
  metadata: { demo: true; page: string; protocol?: string; subject?: string }
}

/** What happens, before it is known when, in which session and under which id. */
export type Step = Omit<DemoEvent, 'id' | 'siteId' | 'sessionId' | 'occurredAt'> & { afterMs: number }
