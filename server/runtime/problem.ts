/** An error as the command line prints it, in text and as `--json`: the same fields as an error of the API. */
import { StoreError } from '../../db/contract/errors.ts'
import { AppError, UsageError, type Issue } from '../errors.ts'

export interface Problem {
  error: string // a code of the API, a kind of the store, `wrong_usage` or `failed`
  message: string
  hint?: string
  issues?: Issue[]
}

export function problemOf(error: unknown): Problem {
  if (error instanceof UsageError) return withHint('wrong_usage', error.message, error.hint)
  if (error instanceof AppError) {
    const { hint, issues } = error.details
    const problem = withHint(error.code, error.message, hint ?? null)
    return issues === undefined ? problem : { ...problem, issues }
  }
  if (error instanceof StoreError) return withHint(error.kind, error.message, storeHints[error.kind] ?? null)
  return withHint('failed', error instanceof Error ? error.message : String(error), null)
}

function withHint(error: string, message: string, hint: string | null): Problem {
  return hint === null ? { error, message } : { error, message, hint }
}

const storeHints: { readonly [K in StoreError['kind']]?: string } = {
  locked: 'stop the other process, or choose another folder with --data-dir',
  newer_schema: 'use the release that wrote it or a newer one; nothing was changed',
  incomplete:
    'put the missing file back or restore a backup; "sightglass accept-loss" continues without it. Nothing was changed',
  corrupt: 'nothing was changed; restore a backup into another folder and compare',
  read_only: 'check the owner of the folder and whether its disk is mounted read-only',
  storage_full:
    'free disk space on the disk of the data folder, or shorten retention; ingest resumes by itself',
}
