/** The reference of the read API for tools and site memory, with their versions. */
import { t } from 'elysia'
import { limits } from '../limits.ts'
import { memoryHistoryModel, memoryPageModel, memoryVersionModel } from '../api/registry/model.ts'
import { toolHistoryModel, toolPageModel } from '../api/registry/model.ts'
import { exampleMemory, exampleTime, exampleTool } from './operation-model.ts'
import type { Operation } from './operation-model.ts'
import { cursor, limit, siteIds } from './operation-model.ts'

const tool = {
  siteId: 'shop-acme',
  name: 'checkout.pay',
  enabled: true,
  tokens: 120,
  tokensEstimated: false,
  version: 1,
  firstSeenAt: exampleTime,
  changedAt: exampleTime,
  removedAt: null,
  tool: exampleTool,
}
const version = { version: 1, at: exampleTime, score: 87, scoreComputed: false, bytes: 160 }
const memory = { siteId: 'shop-acme', firstSeenAt: exampleTime, ...version, snapshot: exampleMemory }

const siteParam = { description: 'The site id.', example: 'shop-acme' }
const paging = { siteId: siteIds, limit: limit(limits.registryPageDefault, limits.registryPageMax), cursor }
const reads = { method: 'get', key: 'secret', scope: 'traces:read', tag: 'Registry' } as const

export const registryOperations: Operation[] = [
  {
    ...reads,
    id: 'listTools',
    path: '/v1/tools',
    summary: 'List tools',
    about: 'Sorted by site and name. Each entry has the descriptor as it was sent.',
    query: {
      ...paging,
      removed: {
        schema: t.Union([t.Literal('true'), t.Literal('false')]),
        description: 'true includes removed tools.',
      },
    },
    answers: {
      200: {
        description: 'A page of tools.',
        schema: toolPageModel,
        example: { tools: [tool], nextCursor: null },
      },
    },
  },
  {
    ...reads,
    id: 'getTool',
    path: '/v1/tools/{siteId}/{name}',
    summary: 'Get a tool and its versions',
    params: { siteId: siteParam, name: { description: 'The tool name.', example: 'checkout.pay' } },
    answers: {
      200: {
        description:
          'The tool and its versions, newest first, each with the differences from the previous one.',
        schema: toolHistoryModel,
        example: {
          tool,
          versions: [{ version: 1, at: exampleTime, change: 'added', differences: [], tool: exampleTool }],
        },
      },
    },
  },
  {
    ...reads,
    id: 'listMemory',
    path: '/v1/memory',
    summary: 'List site memory',
    query: paging,
    answers: {
      200: {
        description: 'A page of sites with their newest snapshot.',
        schema: memoryPageModel,
        example: { memory: [memory], nextCursor: null },
      },
    },
  },
  {
    ...reads,
    id: 'getMemory',
    path: '/v1/memory/{siteId}',
    summary: 'Get the memory of a site',
    params: { siteId: siteParam },
    answers: {
      200: {
        description: 'The newest snapshot, and the list of versions.',
        schema: memoryHistoryModel,
        example: { memory, versions: [version] },
      },
    },
  },
  {
    ...reads,
    id: 'getMemoryVersion',
    path: '/v1/memory/{siteId}/versions/{version}',
    summary: 'Get a version of the memory of a site',
    params: { siteId: siteParam, version: { description: 'The version number, from 1.', example: '1' } },
    answers: {
      200: {
        description: 'The snapshot, and the differences from the previous version.',
        schema: memoryVersionModel,
        example: { memory, differences: [] },
      },
    },
  },
]
