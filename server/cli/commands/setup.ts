/** `sightglass setup`: applies a setup file, or shows what it would change. */
import type { Json } from '../../../db/contract/store.ts'
import { UsageError } from '../../errors.ts'
import { applySetup } from '../../operations/setup/apply.ts'
import { readSetupFile } from '../../operations/setup/file.ts'
import type { Setup } from '../../operations/setup/form.ts'
import { flagOf, textOrNull, textsOf } from '../../runtime/work.ts'
import type { Noun } from '../command.ts'
import { dataCommand } from '../data-command.ts'
import { toggle } from '../option.ts'
import { targetOptions } from '../options.ts'
import { cell, columns, rows } from '../print.ts'

export const setup: Noun = {
  group: 'Server',
  commands: [
    dataCommand({
      name: 'setup',
      summary: 'create or update organizations, sites, keys, endpoints and alert rules from a file',
      arguments: 'FILE',
      usage: 'FILE [--dry-run]',
      about: [
        'The file is TOML; the operations guide at /docs/operations has an example. It lists keys by their SHA-256 hash, and signing secrets by the file that holds them. Everything the file does not name stays as it is. A mistake is reported with its line before anything changes. serve applies the file of --setup-file at every start.',
      ],
      examples: ['sightglass setup appliance.toml --dry-run', 'sightglass serve --setup-file appliance.toml'],
      options: {
        'dry-run': { ...toggle('show what would change and change nothing'), flagOnly: true },
        ...targetOptions,
      },
      access: 'create',
      params({ words: [path], values }) {
        if (path === undefined)
          throw new UsageError('"sightglass setup" needs a file', 'sightglass help setup')
        const { 'dry-run': dryRun, 'webhook-allow': allow, 'sink-dir': sinkDir } = values
        return { setup: readSetupFile(path) as unknown as Json, dryRun, allow, sinkDir }
      },
      async work(context, params) {
        const rules = { allow: textsOf(params, 'allow'), sinkDir: textOrNull(params, 'sinkDir') }
        const services = { ...context.webhooks(rules), store: context.store }
        // The command has read the file, because it may open files that the server may not.
        const setup = params['setup'] as unknown as Setup
        const dryRun = flagOf(params, 'dryRun')
        const changes = await applySetup(services, setup, { actor: 'cli', dryRun })
        return { dryRun, changes: changes.map((change) => ({ ...change })) }
      },
      print({ dryRun, changes }) {
        const changeRows = rows(changes)
        const table = columns(
          ['RESULT', 'KIND', 'ORG', 'NAME', 'NOTE'],
          changeRows.map((change) =>
            ['did', 'kind', 'org', 'name', 'note'].map((field) => cell(change[field])),
          ),
        )
        const pending = changeRows.some(({ did }) => did === 'created' || did === 'changed')
        if (!pending) return `${table}\n\nNothing to change.`
        return dryRun === true ? `${table}\n\nDry run: nothing was changed.` : table
      },
    }),
  ],
}
