/** Reads the attributes of an item once: the parts of an event, and the attributes that are stored. */
import { roleOf, sources, type Part } from './conventions.ts'
import type { Attributes, AttributeValue } from './model.ts'

/** The value of the first source of each part that has one, as text. */
export type Parts = { [part in Part]: string | null }

export interface Reading {
  parts: Parts
  stored: { [name: string]: AttributeValue } | undefined
  dropped: number
}

const partNames = Object.keys(sources) as Part[]
const noParts = Object.fromEntries(partNames.map((part) => [part, null])) as Parts
/** The ranks found so far, reused because every item is read at once. */
const ranks = new Uint8Array(partNames.length)
const noRank = 255

export function partsIn(attributes: Attributes): Parts {
  return readAttributes(attributes, true).parts
}

export function readAttributes(attributes: Attributes, content: boolean): Reading {
  const parts = { ...noParts }
  ranks.fill(noRank)
  const stored: { [name: string]: AttributeValue } = {}
  let count = 0
  let bytesMax = 0
  for (const [name, value] of attributes.values) {
    const role = roleOf(name)
    for (const { part, index, rank } of role.parts) {
      if (rank >= ranks[index]!) continue
      const text = textOf(value)
      if (text === null) continue
      parts[part] = text
      ranks[index] = rank
    }
    if (role.isContent && !content) continue
    bytesMax += mostBytes(name) + mostBytes(value)
    if (name === '__proto__')
      Object.defineProperty(stored, name, { value, enumerable: true, configurable: true })
    else stored[name] = value
    count++
  }
  const droppedCount = bytesMax > valuesBytesMax ? dropLargest(stored) : 0
  return {
    parts,
    stored: count > droppedCount ? stored : undefined,
    dropped: attributes.dropped + droppedCount,
  }
}

/** null for an empty text, and for values that are no text. */
export function textOf(value: AttributeValue | undefined): string | null {
  if (typeof value === 'string') return value === '' ? null : value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null
}

/** Of one attribute as JSON, and of all of an event: the event stays below 64 KiB. */
const valueBytesMax = 16 * 1024
const valuesBytesMax = 40 * 1024

/** A bound without writing it: JSON writes a control character as six. */
function mostBytes(value: AttributeValue): number {
  if (typeof value === 'string') return value.length * 6 + 3
  return typeof value === 'object' && value !== null ? bytesOf(value) : 26
}

function bytesOf(value: AttributeValue): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1
}

/** Removes attributes that are too large, or follow when the limit of all is reached. Returns how many. */
function dropLargest(stored: { [name: string]: AttributeValue }): number {
  let bytes = 0
  let dropped = 0
  for (const name of Object.keys(stored)) {
    const size = bytesOf(name) + bytesOf(stored[name]!)
    if (size <= valueBytesMax && bytes + size <= valuesBytesMax) bytes += size
    else {
      delete stored[name]
      dropped++
    }
  }
  return dropped
}
