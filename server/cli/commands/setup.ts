/** `sightglass setup`: applies a set-up file, or says what it would do. */
import type { Json } from '../../../db/contract/store.ts'
import { UsageError } from '../../errors.ts'
import { applySetup } from '../../operations/setup/apply.ts'
import { readSetupFile } from '../../operations/setup/file.ts'
import type { Setup } from '../../operations/setup/form.ts'
import { cell, rows, type DataVerb } from './data-verb.ts'
import { flagOf, textOrNull, textsOf, type Params } from '../../runtime/params.ts'
import { columns } from '../print.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export async function setUp(context: VerbContext, params: Params): Promise<Json> {
  const rules = { allow: textsOf(params, 'allow'), sinkDir: textOrNull(params, 'sinkDir') }
  const parts = { ...context.webhooks(rules), store: context.store }
  // Read and checked by the command, which is of this very release and may open files that a server may not.
  const setup = params['setup'] as unknown as Setup
  const dryRun = flagOf(params, 'dryRun')
  const changes = await applySetup(parts, setup, { actor: 'cli', dryRun })
  return { dryRun, changes: changes.map((change) => ({ ...change })) }
}

export const setupVerb: DataVerb = {
  writes: true,
  params({ words: [path], values }) {
    if (path === undefined) throw new UsageError('"sightglass setup" needs a file', 'sightglass help setup')
    const setup = readSetupFile(path) as unknown as Json
    const { 'dry-run': dryRun, 'webhook-allow': allow, 'sink-dir': sinkDir } = values
    return { setup, dryRun, allow, sinkDir }
  },
  text({ dryRun, changes }) {
    const all = rows(changes)
    const table = columns(
      ['', 'WHAT', 'ORG', 'NAME', 'NOTE'],
      all.map((change) => ['did', 'kind', 'org', 'name', 'note'].map((member) => cell(change[member]))),
    )
    const open = all.filter(({ did }) => did === 'created' || did === 'changed').length
    if (open === 0) return `${table}\n\nEverything is as the file says.`
    return dryRun === true ? `${table}\n\nNothing was done: this was a dry run.` : table
  },
}
