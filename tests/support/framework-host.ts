/**
 * A program for Node.js: serves the framework named by its argument and prints each event as a line of JSON. Ends
 * after a minute. `watched` takes the middleware from another copy of the package, as the parts of a bundle
 * have it. With EVIDENCE_URL it verifies signatures for https://shop.example.
 */
import { argv, env, exit, stdout } from 'node:process'
import { init } from '../../sdk/node.ts'
import { loadEvidence, sightglass } from '../../sdk/middleware/middleware.ts'
import { publishableKey } from './fake-appliance.ts'
import { nodeFrameworks, watchedServer } from './node-frameworks.ts'

const url = env['EVIDENCE_URL']
const [, , name = '', otherCopy = ''] = argv
const print = (value: unknown): void => void stdout.write(`${JSON.stringify(value)}\n`)
const onError = (problem: unknown): void => print({ problem: String((problem as Error).message) })
const client = init({ publishableKey, siteId: 'shop', exporters: [{ export: print }], onError })
const copy =
  name === 'watched' ? ((await import(otherCopy)) as { sightglass: typeof sightglass }) : { sightglass }
const middleware = copy.sightglass<{ url: string }>(client, {
  skip: ({ url }) => url.endsWith('/skipped'),
  onError,
  ...(url === undefined
    ? {}
    : { evidence: loadEvidence({ url, trust: true }), origins: ['https://shop.example'] }),
})
const start = name === 'watched' ? watchedServer : nodeFrameworks[name]!
const running = await start(middleware)
stdout.write(`listening on ${running.url}\n`)
setTimeout(() => exit(0), 60_000)
