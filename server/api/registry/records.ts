/** Converts pushed tools into records for the store. */
import type { ToolRecord } from '../../../db/contract/registry.ts'
import { sha256Hex } from '../../ids.ts'
import { canonicalText } from '../../text/json-scan.ts'
import { invalidPush } from './push.ts'
import { limits } from '../../limits.ts'

/** `tools` are validated; `exact` are the same with their numbers' spelling. The last of equal names wins. */
export function toolRecords(tools: readonly unknown[], exact: readonly unknown[]): ToolRecord[] {
  const records = new Map<string, ToolRecord>()
  tools.forEach((tool, index) => {
    const { name } = tool as { name: string }
    const json = JSON.stringify(exact[index])
    if (Buffer.byteLength(json) > limits.toolBytesMax) {
      const message = `must have at most ${limits.toolBytesMax} bytes`
      throw invalidPush([{ path: `tools.${index}`, code: 'too_large', message, index }])
    }
    records.set(name, { name, digest: sha256Hex(canonicalText(tool)), json })
  })
  return [...records.values()]
}
