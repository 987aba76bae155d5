/** Where an export goes: standard output, or a file that is only left behind when it is whole. */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from '../../db/rules/durable-files.ts'
import { AppError } from '../errors.ts'
import { print } from './print.ts'

export interface Output {
  /** Writes lines of text, each with its end; bytes as they are. */
  write(text: string | Uint8Array): void
  end(): void
}

/** Throws when the file is there already and may not be replaced. */
export function openOutput(path: string | null, replace: boolean): Output {
  if (path === null) return { write: (text) => print(text), end() {} }
  if (existsSync(path) && !replace)
    throw new AppError('conflict', `${path} is there already.`, { hint: 'add --yes to replace it' })
  const file = openSync(path, 'w', 0o600)
  let open = true
  // One that was not ended is taken away again, so that nobody takes a part for the whole.
  process.once('exit', () => {
    if (open) rmSync(path, { force: true })
  })
  return {
    write(text) {
      const bytes = typeof text === 'string' ? lineBytes(text) : text
      for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from)
    },
    end() {
      fsyncSync(file)
      closeSync(file)
      syncFolder(dirname(path))
      open = false
    },
  }
}

function lineBytes(text: string): Uint8Array {
  return Buffer.from(text.endsWith('\n') ? text : `${text}\n`)
}
