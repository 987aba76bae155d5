/** The registry verbs of the writer and the readers, by name. */
import { addIngestCounts, listIngestCounts, listNearMisses } from './ingest-counts.ts'
import { findMemory, listMemories, listMemoryVersions, pushMemory } from './memory.ts'
import { findTool, listTools, pushTools } from './tools.ts'

export const registryWriteVerbs = {
  'registry.pushTools': pushTools,
  'registry.pushMemory': pushMemory,
  'ingestCounts.add': addIngestCounts,
}

export const registryReadVerbs = {
  'registry.tools': listTools,
  'registry.tool': findTool,
  'registry.memories': listMemories,
  'registry.memory': findMemory,
  'registry.memoryVersions': listMemoryVersions,
  'ingestCounts.list': listIngestCounts,
  'ingestCounts.nearMisses': listNearMisses,
}
