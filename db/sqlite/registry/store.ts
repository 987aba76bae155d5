/** The registry part of the store, each verb sent to the thread that does it. */
import type { RegistryStore } from '../../contract/registry.ts'
import type { Threads } from '../threads/threads.ts'

export function registryStore({ read, write }: Pick<Threads, 'read' | 'write'>): RegistryStore {
  return {
    pushTools: (push) => write('registry.pushTools', push),
    tools: (query) => read('registry.tools', query),
    tool: (query) => read('registry.tool', query),
    pushMemory: (push) => write('registry.pushMemory', push),
    memories: (query) => read('registry.memories', query),
    memory: (query) => read('registry.memory', query),
    memoryVersions: (query) => read('registry.memoryVersions', query),
  }
}
