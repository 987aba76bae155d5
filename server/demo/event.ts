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
    class?: AgentClass
    trust?: string
    vendor: string
    name?: string
    purpose?: string
    confidence?: number
    userAgent?: string
    detectionVersion?: string
    verdict?: string
    evidence?: DemoEvidence
  }
  policy?: { decision: 'allow' | 'deny' | 'review'; ruleId: string; reason?: string }
  metadata: {
    demo: true
    page: string
    protocol?: string
    subject?: string
    method?: string
    status?: number
    bytes?: number
    referrerHost?: string
  }
}

/** What a verdict rests on, as for access logs (sdk/judge). */
export interface DemoEvidence {
  method: 'address'
  list: string
  listDate: string
  networks?: number
  reason?: 'user-triggered'
}

/** An event before it gets an id, a session and a time. */
export type Step = Omit<DemoEvent, 'id' | 'siteId' | 'sessionId' | 'occurredAt'> & { afterMs: number }
