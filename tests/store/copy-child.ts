/** A process that copies `from` to `to` and kills itself after a number of short steps. */
import { openCopy } from '../../db/open.ts'
import { noon } from './make.ts'

const [from = '', to = '', steps = ''] = process.argv.slice(2)
const ends = { from: { location: from, name: from }, to: { location: to, name: to } }
const copy = await openCopy({ ...ends, now: noon, finish: false, stepMs: 0 })
for (let step = 0; step < Number(steps); step++) {
  const { phase } = await copy.step()
  if (phase === 'done') throw new Error(`done after ${step + 1} steps`)
}
process.kill(process.pid, 'SIGKILL')
