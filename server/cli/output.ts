/** Where an export goes: standard output, or a file that exists only when it is complete. */
import { closeSync, existsSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { syncFolder } from '../../db/rules/durable-files.ts'
import { AppError } from '../errors.ts'
import { choice, toggle } from './option.ts'
import { folderPath } from './option-values.ts'
import { print } from './print.ts'

export const fileOptions = {
  format: { ...choice(['json', 'csv'], 'file format'), default: 'json' },
  out: { read: folderPath, value: 'FILE', default: null, help: 'file to write, by default standard output' },
  yes: { ...toggle('replace an existing file'), flagOnly: true },
} as const

export interface Output {
  /** Text gets a line end when it has none; bytes are written as they are. */
  write(text: string | Uint8Array): void
  end(): void
}

/** Throws when the file exists and may not be replaced. */
export function openOutput(path: string | null, replace: boolean): Output {
  if (path === null) return { write: (text) => print(text), end() {} }
  if (existsSync(path) && !replace)
    throw new AppError('conflict', `${path} already exists.`, { hint: 'add --yes to replace it' })
  const file = openSync(path, 'w', 0o600)
  let open = true
  // An incomplete file is deleted, so that nobody mistakes it for a complete one.
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
