/** What a running server says of itself, for `doctor` beside it. */
import type { Json } from '../../../db/contract/store.ts'
import { AppError } from '../../errors.ts'
import type { VerbContext } from '../../runtime/verb-context.ts'

export async function tellState({ state }: VerbContext): Promise<Json> {
  if (state === undefined) throw new AppError('conflict', 'No server runs on this data folder.')
  return (await state()) as unknown as Json
}
