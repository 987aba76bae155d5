/** Reads a pushed snapshot: site map as a tree, policies as texts, the parts of its score. */
import type { Json, JsonObject } from '../../api/registry-api.ts'

export interface MapNode {
  key: string // whole path, unique in the tree
  part: string // last part of the path, as written
  page: SitePage | null // null: only pages below it are listed
  children: MapNode[]
}

interface SitePage {
  path: string
  name: string
  purpose: string
  actions: string[]
  more: JsonObject // further fields
}

export interface SiteMap {
  roots: MapNode[]
  pages: number
  odd: number // entries without a path
  cut: boolean // more pages than a tree can show
}

interface Policy {
  name: string
  texts: string[]
}

interface ScorePart {
  name: string // as in the snapshot
  purpose: string
  filled: boolean
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

const pagesMax = 1_000

/** Builds the tree: `/products/17` is below `/products`, whether or not that is a page. */
export function siteMapOf(snapshot: JsonObject): SiteMap {
  const map = snapshot['siteMap']
  const list = isObject(map) && Array.isArray(map['pages']) ? map['pages'] : []
  const root: MapNode = { key: '', part: '', page: null, children: [] }
  const nodes = new Map<string, MapNode>([['', root]])
  let pages = 0
  let odd = 0
  for (const entry of list) {
    if (pages >= pagesMax) break
    const page = pageOf(entry)
    if (page === null) odd += 1
    else {
      pages += 1
      place(nodes, page)
    }
  }
  return { roots: root.children, pages, odd, cut: pages + odd < list.length }
}

function pageOf(entry: Json): SitePage | null {
  if (!isObject(entry) || typeof entry['path'] !== 'string' || entry['path'] === '') return null
  const { path, name, purpose, availableActions, ...otherFields } = entry
  const actions = Array.isArray(availableActions) ? availableActions : []
  return {
    path: textOf(path),
    name: textOf(name),
    purpose: textOf(purpose),
    actions: actions.map((action) => (typeof action === 'string' ? action : JSON.stringify(action))),
    more: otherFields,
  }
}

const depthMax = 12

function place(nodes: Map<string, MapNode>, page: SitePage): void {
  const parts = page.path.split('/').filter((part) => part !== '')
  const segments =
    parts.length > depthMax ? [...parts.slice(0, depthMax - 1), parts.slice(depthMax - 1).join('/')] : parts
  let key = ''
  let node = nodes.get('') as MapNode
  for (const part of segments.length === 0 ? [''] : segments) {
    key += `/${part}`
    let next = nodes.get(key)
    if (!next) {
      next = { key, part: `/${part}`, page: null, children: [] }
      nodes.set(key, next)
      node.children.push(next)
    }
    node = next
  }
  // A duplicate path is shown twice, as a sibling.
  if (node.page === null) node.page = page
  else node.children.push({ key: `${key}\n${node.children.length}`, part: page.path, page, children: [] })
}

/** Policies with their texts. A policy that is neither text nor a list of texts is shown as JSON. */
export function policiesOf(snapshot: JsonObject): Policy[] {
  const { policies } = snapshot
  if (!isObject(policies)) return []
  const shown = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))
  return Object.entries(policies).map(([name, value]) => ({
    name,
    texts: Array.isArray(value) ? value.map(shown) : [shown(value)],
  }))
}

/** The six parts of contract §5. A computed score is the share of them that is filled. */
const parts: { path: [string] | [string, string]; purpose: string }[] = [
  { path: ['siteMap', 'pages'], purpose: 'pages and their purposes' },
  { path: ['siteMap', 'navigation'], purpose: 'navigation between pages' },
  { path: ['workflows'], purpose: 'steps of common tasks' },
  { path: ['policies'], purpose: 'rules for returns, privacy, payment and similar' },
  { path: ['uiGuidance'], purpose: 'guidance for agents on the site' },
  { path: ['pageContexts'], purpose: 'context for individual pages' },
]

function isFilled(part: Json | undefined): boolean {
  if (typeof part === 'string') return part.trim() !== ''
  if (typeof part === 'object' && part !== null) return Object.keys(part).length > 0
  return typeof part === 'number' || part === true
}

export function scoreParts(snapshot: JsonObject): ScorePart[] {
  return parts.map(({ path: [first, second], purpose }) => {
    const outer = snapshot[first]
    const value = second === undefined ? outer : isObject(outer) ? outer[second] : undefined
    return { name: second === undefined ? first : `${first}.${second}`, purpose, filled: isFilled(value) }
  })
}

/** The computed score with `filled` of the six parts. */
export function scoreWith(filled: number): number {
  return Math.round((100 * filled) / parts.length)
}

/** Fields of a snapshot without a view of their own. */
export function otherMembers(snapshot: JsonObject): string[] {
  return Object.keys(snapshot).filter((name) => !['siteMap', 'policies'].includes(name))
}
