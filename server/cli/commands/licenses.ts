/** `sightglass licenses`: what of others the executable holds, and under which terms. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Invocation } from '../config.ts'
import { AppError } from '../../errors.ts'
import { print } from '../print.ts'

export function licenses({ values }: Invocation): Promise<number> {
  const folder = join(import.meta.dir, 'licenses')
  if (!Bun.isStandaloneExecutable || !existsSync(folder)) {
    throw new AppError('not_found', 'Only the built executable carries the licences.', {
      hint: 'npm run build',
    })
  }
  const name = values.json ? 'components.json' : 'licenses.txt'
  print(readFileSync(join(folder, name), 'utf8'))
  return Promise.resolve(0)
}
