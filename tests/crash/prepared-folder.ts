/** A data folder with two keys, made once per test file and copied for each test, because starts are slow. */
import { cpSync } from 'node:fs'
import { startAppliance } from '../support/binary.ts'
import type { TempDir } from '../support/temp-dir.ts'

export interface PreparedFolder {
  ingest: string
  secret: string
  copyTo(dataDir: string): void
}

export async function prepareFolder(temp: TempDir): Promise<PreparedFolder> {
  const prepared = temp.join('prepared')
  await using appliance = await startAppliance({ dataDir: prepared })
  const mint = async (kind: string): Promise<string> => {
    const keyExit = await appliance.cli('key', 'create', '--kind', kind, '--label', 'crash', '--json')
    return (JSON.parse(keyExit.stdout) as { key: string }).key
  }
  const [ingest, secret] = await Promise.all([mint('ingest'), mint('secret')])
  return { ingest, secret, copyTo: (dataDir) => cpSync(prepared, dataDir, { recursive: true }) }
}
