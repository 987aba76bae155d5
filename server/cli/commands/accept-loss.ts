/** `sightglass accept-loss`: continues with a data folder that lost files; no start does that by itself. */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry } from '../../audit/entry.ts'
import { systemClock } from '../../clock.ts'
import { AppError } from '../../errors.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { openDataFolder } from '../../runtime/open-data-folder.ts'
import { command, type Noun } from '../command.ts'
import { toggle } from '../option.ts'
import { printAnswer } from '../print.ts'

export const acceptLoss: Noun = {
  group: 'Data',
  commands: [
    command({
      name: 'accept-loss',
      summary: 'continue with a data folder that lost files',
      about: [
        'The server does not start when the database, the log, secret.key or audit entries that audit-heads records are missing. This command shows what is missing. With --yes it sets aside the files that describe the lost data, records that in the audit trail, and the next start continues.',
        'Restore a backup instead if you have one.',
      ],
      examples: ['sightglass accept-loss', 'sightglass accept-loss --yes'],
      options: { yes: { ...toggle('accept the loss'), flagOnly: true } },
      async run({ values }) {
        const dataDir = values['data-dir']
        const missing = await missingIn(dataDir)
        if (missing === null) {
          printAnswer(values, { dataDir, missing }, () => `Nothing is missing in ${dataDir}.`)
          return 0
        }
        if (!values.yes)
          throw new AppError('conflict', missing, {
            hint: 'restore a backup if you have one; to continue without the data: sightglass accept-loss --yes',
          })
        const store = await openDataFolder(dataDir, systemClock, null, true)
        try {
          const who = { orgId: applianceOrgId, actor: 'cli' }
          const act = { action: 'data.loss_accepted', target: 'data folder', metadata: { missing } }
          await store.audit.append(auditEntry(who, act, systemClock.now()))
        } finally {
          await store.close()
        }
        printAnswer(values, { dataDir, missing }, () =>
          [
            `Accepted: ${missing}`,
            `Files that describe the lost data are in a folder set-aside-… in ${dataDir}. Start the server.`,
          ].join('\n'),
        )
        return 0
      },
    }),
  ],
}

/** Why the folder does not open, or null. Other errors, such as `locked`, are thrown. */
async function missingIn(dataDir: string): Promise<string | null> {
  try {
    await (await openDataFolder(dataDir, systemClock)).close()
    return null
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'incomplete') throw error
    return error.message
  }
}
