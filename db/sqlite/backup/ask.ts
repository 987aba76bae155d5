/** Asks one question about files to a thread that ends with its answer. */
import { openPort } from '../threads/port.ts'
import type { FileVerbs } from './file-verbs.ts'

export async function askFile<K extends keyof FileVerbs>(
  verb: K,
  command: Parameters<FileVerbs[K]>[0],
): Promise<ReturnType<FileVerbs[K]>> {
  const reader = openPort('reader')
  try {
    return (await reader.ask(verb, command)) as ReturnType<FileVerbs[K]>
  } finally {
    await Promise.allSettled([reader.ask('close', null)])
    await reader.ended
  }
}
