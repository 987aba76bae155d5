/** Reads a set-up file from the disk; messages name the file, the line and the member. */
import { readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { UsageError } from '../../errors.ts'
import { readSetup, type Setup } from './form.ts'
import { brokenLine, lineOf } from './line-of.ts'

const bytesMax = 1024 * 1024

export function readSetupFile(path: string): Setup {
  const text = readText(path, path)
  const readSecret = (file: string) => readText(resolve(dirname(path), file), path)
  return readSetupText(text, path, readSecret)
}

export function readSetupText(text: string, name: string, readSecret: (file: string) => string): Setup {
  const where = (path: string) => {
    const line = lineOf(text, path)
    return `${name}${line === null ? '' : `:${line}`}${path === '' ? '' : `: ${path}`}`
  }
  let table: unknown
  try {
    // Dates without quotes come as objects; as text they read like any other.
    table = JSON.parse(JSON.stringify(Bun.TOML.parse(text)))
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^TOML Parse error: /, '') : 'unreadable'
    throw new UsageError(`${name}:${brokenLine(text, parses)}: not valid TOML: ${why}`)
  }
  return readSetup(table, { where, readSecret })
}

function parses(text: string): boolean {
  try {
    Bun.TOML.parse(text)
    return true
  } catch {
    return false
  }
}

function readText(path: string, setupPath: string): string {
  const from = path === setupPath ? path : `${setupPath}: ${path}`
  try {
    if (statSync(path).size > bytesMax) throw new UsageError(`${from}: the file is larger than 1 MiB`)
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof UsageError) throw error
    const code = error instanceof Error && 'code' in error ? error.code : null
    const reason = code === 'ENOENT' ? 'no such file' : `it cannot be read (${String(code)})`
    throw new UsageError(`${from}: ${reason}`)
  }
}
