/** Counts by class and vendor together: which vendor came as what. */
import type { Database } from 'bun:sqlite'
import type { ClassVendor, ClassVendorQuery, CountedName } from '../../../contract/store.ts'
import { countUnfolded } from '../rollups/fold.ts'
import { member } from '../blocks/fields.ts'
import { classVendorMember, memberAndCode, pairOther, pairSpan } from '../rollups/counts.ts'
import { foldedRows, hourRange, siteCodes, typeCodes } from '../rollups/range.ts'
import { termTexts } from '../blocks/term-texts.ts'
import type { Sliced } from '../../threads/slices.ts'

export function* readClassVendor(db: Database, org: number, query: ClassVendorQuery): Sliced<ClassVendor> {
  const range = hourRange(query.sinceMs, query.untilMs)
  const asked = {
    ...{ org, index: classVendorMember },
    sites: siteCodes(db, org, query.siteIds),
    types: typeCodes(db, org, query.types),
  }
  const sums = new Map<number, number>() // by pair
  const add = (code: number, events: number) => sums.set(code, (sums.get(code) ?? 0) + events)

  yield* foldedRows(db, 'code, live + expired', asked, range, ([code, events]) => add(code!, events!))
  const unfolded = yield* countUnfolded(db, org, [classVendorMember])
  for (const { hour, site, type, values } of unfolded.groups()) {
    if (hour < range.from || hour >= range.until) continue
    if (asked.sites?.has(site) === false || asked.types?.has(type) === false) continue
    for (const [key, events] of values) {
      const [index, code] = memberAndCode(key)
      if (index === classVendorMember) add(code, events)
    }
  }
  return { rows: namedRows(db, org, sums) }
}

/** The most frequent first. */
function namedRows(db: Database, org: number, sums: ReadonlyMap<number, number>): ClassVendor['rows'] {
  const classes = termTexts(db, org, member.class)
  const vendors = termTexts(db, org, member.vendor)
  const nameOf = (texts: ReadonlyMap<number, string>, code: number): CountedName => {
    if (code === 0) return 'missing'
    return code === pairOther ? 'other' : { name: texts.get(code) ?? '' }
  }
  const rows = Array.from(sums, ([code, count]) => ({
    class: nameOf(classes, Math.floor(code / pairSpan)),
    vendor: nameOf(vendors, code % pairSpan),
    count,
  }))
  return rows.sort((a, b) => b.count - a.count)
}
