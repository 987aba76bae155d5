/** Hundreds of kills, run by hand: `bun tests/crash/rounds.ts --rounds 300 [--seed N]`, see --help. */
import { cpus } from 'node:os'
import { fixtures } from '../store/fixture.ts'
import { tempDir, type TempDir } from '../support/temp-dir.ts'
import { ingestRound } from './ingest-round.ts'
import { migrationRound } from './migration-round.ts'
import { powerCut } from './power-cut.ts'
import { buildPreload, whyNoPreload } from './preload.ts'
import type { Found } from './round.ts'
import { anySeed, seeded, type Seeded } from './seeded.ts'
import { takingRound } from './deletion-round.ts'
import { prepareSegment, sealRound } from './seal-round.ts'

const help = `Kills a process that works on a data folder at a random moment, looks at what is left, goes on with it.
Of four rounds two are during ingest (flush, fold, merge, seal), one during retention and erasure beside ingest, one
while the data of an earlier schema is opened. Where there is a gcc, every other one of the first three is a power cut:
what no sync has made safe is gone too. Exit code 1 when anything was lost, doubled or damaged.

  --rounds N  how many; 40 when not said
  --sealing   instead kills while a full segment is sealed, gets its path columns and is repacked beside ingest; every
              fourth round is a power cut, where there is a gcc
  --rest MS   between two batches of each of the four senders; 0 when not said, as fast as it can
  --seed N    of an earlier run, to repeat its choices (the moments themselves depend on the machine)`

const batchSizes = [1, 20, 250, 1_000, 1_000]
const roundsPerFolder = 12 // in a growing folder `verify` would take most of the time

interface Folders {
  ingest: { dir: TempDir; stored: number }
  taking: TempDir
  notes: TempDir // of the writes that a power cut undoes
}

function freshFolders(old?: Folders): Folders {
  old?.ingest.dir.remove()
  old?.taking.remove()
  old?.notes.remove()
  return {
    ingest: { dir: tempDir('rounds'), stored: 0 },
    taking: tempDir('rounds'),
    notes: tempDir('rounds'),
  }
}

async function oneRound(
  number: number,
  folders: Folders,
  { below: randomBelow }: Seeded,
  library: string | null,
  restMs: number,
): Promise<[string, Found]> {
  const killAfterMs = randomBelow(800)
  const kind = number % 4
  const roundIn = (folder: string) => {
    const cut =
      library !== null && number % 8 > 3 ? powerCut(library, folder, folders.notes.path, randomBelow) : {}
    return { folder, number, killAfterMs, restMs, ...cut }
  }
  if (kind === 2) return ['taking', await takingRound(roundIn(folders.taking.path))]
  if (kind === 3) {
    using dir = tempDir('rounds')
    const allFixtures = fixtures()
    return [
      'migration',
      await migrationRound(
        dir.join('data'),
        allFixtures[randomBelow(allFixtures.length)]!,
        40 + randomBelow(400),
      ),
    ]
  }
  const batchEvents = batchSizes[randomBelow(batchSizes.length)]!
  const { dir, stored } = folders.ingest
  const result = await ingestRound(roundIn(dir.path), batchEvents, stored)
  folders.ingest.stored = result.stored
  return ['ingest', result]
}

/** Returns what the kill interrupted, and what was found. */
async function oneSealRound(
  number: number,
  prepared: string,
  { below: randomBelow }: Seeded,
  library: string | null,
): Promise<[string, Found]> {
  using dir = tempDir('rounds')
  using notes = tempDir('rounds')
  const folder = dir.join('data')
  const cut = library !== null && number % 4 === 3 ? powerCut(library, folder, notes.path, randomBelow) : {}
  const result = await sealRound({ folder, number, ...cut }, prepared, randomBelow)
  return [result.during, result]
}

async function main(args: string[]): Promise<number> {
  if (args.includes('--help')) {
    console.log(help)
    return 0
  }
  const option = (name: string, otherwise: number) =>
    args.includes(name) ? Number(args[args.indexOf(name) + 1]) : otherwise
  const rounds = option('--rounds', 40)
  const restMs = option('--rest', 0)
  const seed = option('--seed', anySeed())
  const random = seeded(seed)
  using built = tempDir('rounds')
  const library = whyNoPreload() === null ? buildPreload('unsynced', built.path) : null
  console.log(`${rounds} rounds, seed ${seed}, ${cpus().length} cores, Bun ${Bun.version}`)
  const counts: { [kind: string]: number } = {}
  const total = { acknowledged: 0, lost: 0, doubled: 0, faults: 0 }
  const isSealing = args.includes('--sealing')
  using prepared = tempDir('rounds')
  if (isSealing) await prepareSegment(prepared.path)
  // A run of few rounds begins with any phase, so that some days try all of them, also as power cuts.
  const first = isSealing ? random.below(12) : 0
  let folders = freshFolders()
  for (let number = 0; number < rounds; number++) {
    if (number > 0 && number % roundsPerFolder === 0) folders = freshFolders(folders)
    const [kind, result] = isSealing
      ? await oneSealRound(first + number, prepared.path, random, library)
      : await oneRound(number, folders, random, library, restMs)
    counts[kind] = (counts[kind] ?? 0) + 1
    total.acknowledged += result.acknowledged
    total.lost += result.lost
    total.doubled += result.doubled
    total.faults += result.faults.length
    if (result.lost !== 0 || result.doubled !== 0 || result.faults.length > 0)
      console.log(`round ${number}, ${kind}: ${JSON.stringify(result)}`)
    if (number % 20 === 19) console.log(`${number + 1} rounds: ${JSON.stringify(total)}`)
  }
  console.log(`kills: ${JSON.stringify(counts)}`)
  console.log(
    `${total.acknowledged} acknowledged, ${total.lost} lost, ${total.doubled} doubled, verify: ${total.faults} faults`,
  )
  return total.lost === 0 && total.doubled === 0 && total.faults === 0 ? 0 : 1
}

process.exitCode = await main(Bun.argv.slice(2))
