/** Changes the settings of a site: its name, whether it is hidden, whether keys must list it. */
import type { Site, Store } from '../../../db/contract/store.ts'
import { auditEntry, type Actor } from '../../audit/entry.ts'
import type { Clock } from '../../clock.ts'
import { wrongField } from '../../http/validate.ts'
import { limits } from '../../limits.ts'

interface Services {
  store: Pick<Store, 'sites'>
  clock: Clock
}

export interface SiteChange {
  name?: string | undefined // '' removes the name
  hidden?: boolean | undefined
  restricted?: boolean | undefined
}

/** Works before the first event of a site, so that it can be named and restricted in advance. */
export async function changeSite(
  { store, clock }: Services,
  who: Actor,
  siteId: string,
  change: SiteChange,
): Promise<Site> {
  if (siteId === '' || [...siteId].length > limits.idCharsMax)
    throw wrongField('siteId', `A site id must have 1 to ${limits.idCharsMax} characters.`)
  const name = change.name?.trim()
  if (name !== undefined && ([...name].length > limits.labelCharsMax || /[\u0000-\u001f\u007f]/.test(name)))
    throw wrongField(
      'name',
      `The name must have at most ${limits.labelCharsMax} characters, without line breaks.`,
    )
  const known = (await store.sites.list(who.orgId)).find((site) => site.siteId === siteId)
  const before = known ?? { siteId, name: null, hidden: false, restricted: false, seen: false }
  const site: Site = {
    ...before,
    name: name === undefined ? before.name : name || null,
    hidden: change.hidden ?? before.hidden,
    restricted: change.restricted ?? before.restricted,
  }
  const metadata = { before: settingsOf(before), after: settingsOf(site) }
  const audit = auditEntry(who, { action: actionOf(before, site), target: siteId, metadata }, clock.now())
  await store.sites.change({ orgId: who.orgId, site: { siteId, ...settingsOf(site) }, audit })
  return site
}

/** A change of the name alone has its own action, so that renamed sites can be found in the audit trail. */
function actionOf(before: Site, after: Site): string {
  const isOnlyName =
    before.name !== after.name && before.hidden === after.hidden && before.restricted === after.restricted
  return isOnlyName ? 'site.renamed' : 'site.changed'
}

function settingsOf({ name, hidden, restricted }: Site) {
  return { name, hidden, restricted }
}
