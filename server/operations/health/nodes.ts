/** The nodes of a shared database: what this one reports of itself, and Settings → System with all of them. */
import { isoTime } from '../../clock.ts'
import { seenMsMax, skewMaxMs, type SharedNode } from '../../system/shared-node.ts'
import { ownChecks, type OwnServices } from './readiness.ts'
import { upkeepProblem } from './upkeep.ts'
import type { Backlog, Node, NodeReport, NodeRole } from '../../../db/contract/nodes.ts'
import type { Store } from '../../../db/contract/store.ts'

interface ReportServices extends OwnServices {
  node: Pick<SharedNode, 'isNamedTwice'> | null
  state: { isDraining: boolean }
}

/** What the other nodes see of this one. */
export function nodeReport(services: ReportServices): Omit<NodeReport, 'aheadMs'> {
  const { store, node, state } = services
  const { queuedBytes, oldestMs } = store.events.pressure()
  const behind = store.behind()
  const problems = [
    ...ownChecks(services)
      .filter(({ ok }) => !ok)
      .map(({ name, detail }) => `${name}: ${detail}`),
    upkeepProblem(behind?.upkeep ?? null),
    node?.isNamedTwice() ? 'another process uses the same --node-name' : null,
  ].filter((problem) => problem !== null)
  return {
    queuedBytes,
    queuedMs: Math.round(oldestMs),
    viewMs: Math.round(behind?.viewMs ?? 0),
    isEnding: state.isDraining,
    problem: problems.length === 0 ? null : problems.join('; '),
  }
}

/** `missing`: it was not seen for 20 s. */
type NodeState = 'running' | 'ending' | 'missing'

interface NodeView {
  name: string
  version: string
  role: NodeRole
  state: NodeState
  isThis: boolean // it answered this request
  startedAt: string
  seenAt: string
  aheadMs: number | null // its clock; null before its first report
  isClockOff: boolean
  queuedBytes: number
  queuedMs: number
  viewMs: number // age of its view of the changes of other nodes
  problem: string | null
}

export interface NodesView {
  /** False: the database is in the data folder of this process, and there are no nodes. */
  isShared: boolean
  nodes: NodeView[]
  /** Of the nodes that run; more than one during an upgrade. */
  versions: string[]
  backlog: (Omit<Backlog, 'oldestDueAtMs'> & { oldestDueMs: number | null }) | null
}

interface NodesServices {
  store: Pick<Store, 'nodes'>
  node: SharedNode | null
}

export async function nodesView({ store, node }: NodesServices): Promise<NodesView> {
  if (node === null) return { isShared: false, nodes: [], versions: [], backlog: null }
  const now = node.clock.now()
  const [storedNodes, { oldestDueAtMs, ...backlog }] = await Promise.all([
    store.nodes.list({ now }),
    store.nodes.backlog({ now }),
  ])
  const nodes = storedNodes.map((storedNode) => viewOf(storedNode, now, node.name))
  const running = nodes.filter(({ state }) => state !== 'missing')
  const oldestDueMs = oldestDueAtMs === null ? null : Math.max(0, now - oldestDueAtMs)
  return {
    isShared: true,
    nodes,
    backlog: { ...backlog, oldestDueMs },
    versions: [...new Set(running.map(({ version }) => version))].sort(),
  }
}

function viewOf(
  { startedAtMs, seenAtMs, report, ...nodeFields }: Node,
  now: number,
  ownName: string,
): NodeView {
  const { queuedBytes, queuedMs, viewMs, problem } = report ?? noReport
  const isMissing = now - seenAtMs > seenMsMax
  const aheadMs = report?.aheadMs ?? null
  return {
    ...nodeFields,
    state: isMissing ? 'missing' : report?.isEnding ? 'ending' : 'running',
    isThis: nodeFields.name === ownName,
    startedAt: isoTime(startedAtMs),
    seenAt: isoTime(seenAtMs),
    aheadMs,
    isClockOff: aheadMs !== null && Math.abs(aheadMs) > skewMaxMs,
    queuedBytes,
    queuedMs,
    viewMs,
    problem,
  }
}

const noReport = { queuedBytes: 0, queuedMs: 0, viewMs: 0, problem: null }
