/**
 * Tests of the suites for both engines that run once, with the reason: whole files, which
 * `npm test -- --engine postgres` leaves out, and single tests, which are a `folderTest` of `engine.ts`.
 */

const folder = 'about files of the data folder'
const nodes = 'starts nodes of its own'
const network = 'runs in a network of its own, from which no node reaches its database'
const backups = 'nodes back up with the tools of PostgreSQL'

export const sqliteOnlyFiles: { [path: string]: string } = {
  'tests/api/clocks-apart.test.ts': nodes,
  'tests/api/first-start.test.ts': nodes,
  'tests/api/load-balancers.test.ts': nodes,
  'tests/api/nodes.test.ts': nodes,
  'tests/api/shared-records.test.ts': nodes,
  'tests/api/two-nodes.test.ts': nodes,
  'tests/e2e/copy.test.ts': nodes,
  'tests/e2e/database-away.test.ts': nodes,
  'tests/e2e/database-read-only.test.ts': nodes,
  'tests/e2e/pages-nodes.test.ts': nodes,
  'tests/api/identity-checkpoints.test.ts': folder,
  'tests/api/locked-database.test.ts': folder,
  'tests/api/lost-evidence.test.ts': folder,
  'tests/api/promised-bounds.test.ts': folder,
  'tests/api/unavailable.test.ts': 'plays a failing database over the threads of a folder',
  'tests/e2e/full-disk.test.ts': 'fills the disk of a data folder',
  'tests/e2e/identity-canary.test.ts': folder,
  'tests/e2e/operate-backup.test.ts': backups,
  'tests/e2e/operate-closed.test.ts': network,
  'tests/e2e/evidence-dns.test.ts': network,
  'tests/e2e/operate-drill.test.ts': backups,
  'tests/e2e/operate-memory.test.ts': folder,
  'tests/e2e/operate-open-files.test.ts': folder,
  'tests/e2e/operate-read-only.test.ts': folder,
  'tests/e2e/operate-run.test.ts': folder,
  'tests/e2e/operate-upgrade.test.ts': backups,
  'tests/e2e/operate-upgrade-nodes.test.ts': nodes,
  'tests/e2e/packages-npm.test.ts': 'starts the installed command in an environment of its own',
  'tests/e2e/packages.test.ts': 'starts servers in another root folder and network',
  'tests/e2e/postgres-node.test.ts': nodes,
  'tests/e2e/postgres-upgrade-command.test.ts': nodes,
  'tests/e2e/postgres-upgrade.test.ts': nodes,
  'tests/e2e/start.test.ts': folder,
  'tests/e2e/operate-api.test.ts': backups,
  'tests/e2e/webhooks-load.test.ts': folder,
  'tests/regressions/0003-signed-head-in-the-log.test.ts': folder,
  'tests/regressions/0014-backups-under-a-wrong-clock.test.ts': backups,
}

export const sqliteOnlyTests: { [path: string]: { [test: string]: string } } = {
  'tests/api/cli.test.ts': {
    'commands about the state of a folder name one that is mistyped, and create nothing': folder,
    'a data folder that is a file, or has a broken database, is a one-line error and exit 1': folder,
  },
  'tests/api/identity-audit-trim.test.ts': {
    'a heads file older than a trim catches up; one of another chain does not': folder,
  },
  'tests/api/webhooks-cli.test.ts': {
    'with a key ring: the folder gets no key file, and the newest key encrypts': folder,
  },
  'tests/e2e/operate-base-path.test.ts': {
    'on a unix socket the proxy is trusted, a dead socket is replaced, a live one and a file are not':
      'starts the executable without the helper that names the database',
  },
  'tests/e2e/operate-doctor.test.ts': {
    'doctor checks the options of the running server, not its own defaults': backups,
  },
  'tests/e2e/pages-detect-verdicts.test.ts': {
    'an empty appliance offers the command that imports a log, and it fills the page': folder,
  },
  'tests/e2e/pages-webhooks.test.ts': {
    'backups are created, verified, downloaded and deleted; health checks and stored data are shown': backups,
  },
  'tests/regressions/0006-half-made-backup.test.ts': {
    'doctor reports a missing backup, not a damaged one': backups,
  },
}
