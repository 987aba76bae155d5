/** Creates every file that must survive a power cut, then exits: `bun names-child.ts FOLDER`. */
import { openSigningKey } from '../../server/audit/signing.ts'
import { writeCheckpoints } from '../../server/audit/checkpoints.ts'
import { writeLastRun, writeProof } from '../../server/operations/backup/backup-folder.ts'
import { startClockGuard, testTime } from '../../server/system/clock-guard.ts'
import { openOutput } from '../../server/cli/commands/export.ts'
import { openSecretBox } from '../../server/system/encryption.ts'
import { appendLines } from '../../server/webhooks/sinks/file.ts'

const folder = process.argv[2]!
const quiet = { debug() {}, info() {}, warn() {}, error() {}, setLevel: () => 'info', close: async () => {} }
const log = quiet as never
openSecretBox(folder)
const key = openSigningKey(folder)
const heads = async () => ({ org_a: { count: 1, hash: 'a'.repeat(64) } })
const noteCheckpoints = async () => {}
await writeCheckpoints(
  { store: { audit: { heads, noteCheckpoints } as never }, key, folder, log },
  Date.now(),
)
writeProof(`${folder}/one.backup`, { sha256: '', provenAt: '' })
writeLastRun(folder, { at: '', ok: true, name: null, message: '' })
startClockGuard({ time: testTime({ now: () => Date.now() }), dataDir: folder, log }).save()
const output = openOutput(`${folder}/export.csv`, false)
output.write('a\n')
output.end()
await appendLines(folder, 'sink/events.ndjson', ['{}'])
process.exit(0)
