/** Processes that start at once on one empty database become one appliance; one with other keys is refused. */
import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { openStore } from '../../db/open.ts'
import { cli, startAppliance, type Appliance } from '../support/binary.ts'
import { database } from '../support/postgres.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(90_000)

const [key, newer, foreign] = ['ab', 'bc', 'cd'].map((pair) => pair.repeat(32)) as [string, string, string]
const dir = tempDir('first-start')
const nodes: Appliance[] = []
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.stop()))
  dir.remove()
})

const setupFile = dir.join('setup.toml')
await Bun.write(
  setupFile,
  `[[organizations]]
slug = "acme"
name = "Acme"
[[organizations.sites]]
id = "shop"
[[organizations.keys]]
label = "shop"
kind = "ingest"
hash = "${'5'.repeat(64)}"
`,
)

let url = ''
const envOf = (ring: string) => ({ SIGHTGLASS_DATABASE: url, SIGHTGLASS_KEY_RING: ring })

async function start(name: string, role: string, ring = key): Promise<Appliance> {
  const args = ['--node-name', name, '--node-role', role, '--setup-file', setupFile]
  const node = await startAppliance({ dataDir: dir.join(name), args, env: envOf(ring) })
  nodes.push(node)
  return node
}

test('three nodes bootstrap once, print one link, and apply the setup file once', async () => {
  url = (await database('empty')).url
  const [allAppliance, web, ingest] = await Promise.all([
    start('a', 'all'),
    start('b', 'web'),
    start('c', 'ingest'),
  ])
  const tokens = await Promise.all(
    [allAppliance, web].map(async (node) => (await node.setupLink()).split('#')[1]),
  )
  expect(tokens[0]).toBe(tokens[1]!)
  expect(ingest.stdout()).not.toContain('set up')
  const store = await openStore({ folder: dir.path, now: Date.now(), shared: { url, node: 'test' } })
  expect((await store.orgs.list()).map(({ slug }) => slug).toSorted()).toEqual(['acme', 'default'])
  const acme = (await store.orgs.find('acme'))!
  expect((await store.keys.list({ orgId: acme.id })).map(({ label }) => label)).toEqual(['shop'])
  const createdOrgs = await store.audit.list({
    orgId: 'org_system',
    limit: 50,
    beforeSeq: null,
    filter: { actions: ['org.created'] },
  })
  expect(createdOrgs.entries).toHaveLength(2)

  const claim = (node: Appliance, email: string) =>
    fetch(`${node.url}/api/setup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token: tokens[0], email, password: 'a window in a vessel' }),
    }).then(({ status }) => status)
  const claims = await Promise.all([claim(web, 'ann@example.com'), claim(allAppliance, 'bob@example.com')])
  expect(claims.toSorted()).toEqual([201, 409])
  expect((await store.accounts.list()).filter(({ operator }) => operator)).toHaveLength(1)
  await store.close()
})

test('a node with another key ring is refused and says what to do; a ring that has the key replaces it', async () => {
  const env = envOf(foreign)
  const refused = await cli(['serve', '--listen', '127.0.0.1:0', '--node-name', 'd'], {
    dataDir: dir.join('d'),
    env,
  })
  expect(refused.code).not.toBe(0)
  expect(refused.stderr).toContain('the key ring (--key-file or SIGHTGLASS_KEY_RING) lacks the key')
  expect(refused.stderr).toContain('use the key ring of the other nodes')

  const rotated = await start('e', 'all', `${newer}\n${key}`)
  expect(rotated.stdout()).not.toContain('set up') // there is an owner
  const behind = await cli(['org', 'create', '--name', 'New'], { dataDir: dir.join('f'), env: envOf(key) })
  expect(behind.stderr).toContain('lacks the key')

  // Whoever lost the key ring can go on with another one.
  for (const node of nodes.splice(0)) await node.stop()
  const lost = { dataDir: dir.join('g'), env }
  expect((await cli(['accept-loss'], lost)).stderr).toContain('lacks the key')
  expect((await cli(['accept-loss', '--yes'], lost)).code).toBe(0)
  await start('g', 'all', foreign)
})
