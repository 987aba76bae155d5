/** Saves a database of today's schema into `fixtures/`: run it before a change of the schema, and commit what it makes. */
import { fixturesFolder, saveFixture } from './fixture.ts'

const schema = await saveFixture(fixturesFolder)
process.stdout.write(`saved a database of schema ${schema}\n`)
