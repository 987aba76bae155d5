/** `sightglass accept-loss`: continues with a data folder that lost something, which no start does by itself. */
import { StoreError } from '../../../db/contract/errors.ts'
import { auditEntry } from '../../audit/entry.ts'
import { systemClock } from '../../clock.ts'
import type { Invocation } from '../config.ts'
import { AppError } from '../../errors.ts'
import { openDataFolder } from '../../runtime/open-data-folder.ts'
import { applianceOrgId } from './org.ts'
import { print } from '../print.ts'

export async function acceptLoss({ values }: Invocation): Promise<number> {
  const dataDir = values['data-dir']
  const missing = await whatIsMissing(dataDir)
  const say = (text: string) => print(values.json ? JSON.stringify({ dataDir, missing }) : text)
  if (missing === null) {
    say(`Nothing is missing in ${dataDir}.`)
    return 0
  }
  if (!values.yes) {
    throw new AppError('conflict', missing, {
      hint: 'restore a backup if you have one. To continue without what is missing: sightglass accept-loss --yes',
    })
  }
  const store = await openDataFolder(dataDir, systemClock, null, true)
  try {
    const who = { orgId: applianceOrgId, actor: 'cli' }
    const act = { action: 'data.loss_accepted', target: 'data folder', metadata: { missing } }
    await store.audit.append(auditEntry(who, act, systemClock.now()))
  } finally {
    await store.close()
  }
  say(
    `Accepted: ${missing}\nWhat described the lost data is in a folder set-aside-… in ${dataDir}. Start the server.`,
  )
  return 0
}

/** What keeps the folder from opening; null when it opens. Other refusals, such as `locked`, are thrown. */
async function whatIsMissing(dataDir: string): Promise<string | null> {
  try {
    await (await openDataFolder(dataDir, systemClock)).close()
    return null
  } catch (error) {
    if (!(error instanceof StoreError) || error.kind !== 'incomplete') throw error
    return error.message
  }
}
