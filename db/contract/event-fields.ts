/** Every field of an event that the store knows by name: one row each, from which columns and indexes follow. */
import type { EventFilter } from './event-filter.ts'

export interface EventField {
  name: string // in `EventRecord`
  /** Where it lies in the event's JSON. */
  path: readonly string[]
  /** Its number in terms, postings and rollups, and its column in a block; never used again for another field. */
  number: number
  /** The list of a filter that names its values; null: not filterable, and not in the segment index. */
  filter: Exclude<keyof EventFilter, 'sinceMs' | 'untilMs' | 'text'> | null
  /** Values that an organization interns; others are stored as hashes. 0: always a hash. */
  termsMax: number
  /** Whether rollups count its values. */
  counted: boolean
  /** The first version of the segment index that has it; segments sealed before are scanned for it. */
  indexVersion: number
}

/** Numbers 14 to 19 are columns of a block that are no fields (db/sqlite/events/blocks/block.ts), and 22 are agents. */
export const eventFields = [
  {
    name: 'type',
    path: ['type'],
    number: 0,
    filter: 'types',
    termsMax: 1_000,
    counted: false,
    indexVersion: 1,
  },
  {
    name: 'outcome',
    path: ['outcome'],
    number: 1,
    filter: 'outcomes',
    termsMax: 100,
    counted: false,
    indexVersion: 1,
  },
  {
    name: 'siteId',
    path: ['siteId'],
    number: 2,
    filter: 'siteIds',
    termsMax: 1_000,
    counted: false,
    indexVersion: 1,
  },
  {
    name: 'sessionId',
    path: ['sessionId'],
    number: 3,
    filter: 'sessionIds',
    termsMax: 0,
    counted: false,
    indexVersion: 1,
  },
  {
    name: 'class',
    path: ['agent', 'class'],
    number: 4,
    filter: 'classes',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'vendor',
    path: ['agent', 'vendor'],
    number: 5,
    filter: 'vendors',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'trust',
    path: ['agent', 'trust'],
    number: 6,
    filter: 'trusts',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'tool',
    path: ['tool'],
    number: 7,
    filter: 'tools',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'protocol',
    path: ['metadata', 'protocol'],
    number: 8,
    filter: 'protocols',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'subject',
    path: ['metadata', 'subject'],
    number: 9,
    filter: 'subjects',
    termsMax: 0,
    counted: false,
    indexVersion: 1,
  },
  {
    name: 'decision',
    path: ['policy', 'decision'],
    number: 10,
    filter: 'decisions',
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'ruleId',
    path: ['policy', 'ruleId'],
    number: 11,
    filter: null,
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'reason',
    path: ['policy', 'reason'],
    number: 12,
    filter: null,
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'page',
    path: ['metadata', 'page'],
    number: 13,
    filter: null,
    termsMax: 4_096,
    counted: true,
    indexVersion: 1,
  },
  {
    name: 'name',
    path: ['agent', 'name'],
    number: 20,
    filter: 'names',
    termsMax: 4_096,
    counted: false,
    indexVersion: 2,
  },
  {
    name: 'purpose',
    path: ['agent', 'purpose'],
    number: 21,
    filter: 'purposes',
    termsMax: 4_096,
    counted: false,
    indexVersion: 2,
  },
] as const satisfies readonly EventField[]

export type EventFieldName = (typeof eventFields)[number]['name']

/** What a segment that is sealed now gets. */
export const indexVersion = Math.max(...eventFields.map((field) => field.indexVersion))
