/** Reads who says so: the record of an event, from the columns of its block and the table of networks. */
import { keylessIds, type Judge, type Provenance } from '../../../contract/provenance.ts'
import type { Database } from '../../database.ts'
import type { OpenBlock } from '../blocks/block-table.ts'
import { isHash, member, termTexts } from '../blocks/fields.ts'
import { networkOf } from '../blocks/networks.ts'

type TextField = 'door' | 'key' | 'verdict' | 'judgedBy' | 'observedBy' | 'evidence'

/** The reader of one organization's records in a snapshot. */
export function provenanceReader(db: Database, org: number): (block: OpenBlock, row: number) => Provenance {
  const dictionaries = new Map<number, Map<number, string>>()

  function textOf(block: OpenBlock, row: number, name: TextField): string | null {
    const field = member[name]
    const code = block.code(field, row)
    if (code === 0) return null
    if (isHash(code)) return block.hashedText(field, row)
    let texts = dictionaries.get(field)
    if (texts === undefined) dictionaries.set(field, (texts = termTexts(db, org, field)))
    return texts.get(code) ?? null
  }

  return (block, row) => {
    const verdict = textOf(block, row, 'verdict')
    const judge = textOf(block, row, 'judgedBy') as Judge | null
    const key = textOf(block, row, 'key')
    return {
      door: textOf(block, row, 'door'),
      key: key === null || keylessIds.includes(key) ? null : key,
      verdict,
      judgedBy: verdict === null ? null : (judge ?? 'unknown'),
      observedBy: textOf(block, row, 'observedBy'),
      evidence: textOf(block, row, 'evidence'),
      // Only the appliance's own verdict of an impostor has a network.
      network:
        verdict === 'contradicted' && judge === 'appliance' ? networkOf(db, org, block.firstSeq + row) : null,
    }
  }
}
