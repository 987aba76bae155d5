/** The type of a demo event: an ordinary trace event, marked as demo data. */
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

/** An event before it gets an id, a session and a time. */
export type Step = Omit<DemoEvent, 'id' | 'siteId' | 'sessionId' | 'occurredAt'> & { afterMs: number }
