/** What help says about the verbs that run the appliance itself. */
import type { VerbText } from './verb-text.ts'

export const operateTexts = {
  'backup create': {
    summary: 'make a backup and prove it, also while a server runs',
    usage: 'backup create [--backup-dir FOLDER]',
    about: [
      'Copies one moment of the database beside the running writer, reads the copy from end to end, compares it with what',
      'it was taken from, and seals it with its SHA-256. Without encryption it is also a database any SQLite tool opens,',
      'and the key file secret.key does not travel along: keep a copy of it apart. With SIGHTGLASS_BACKUP_PASSPHRASE (or',
      'SIGHTGLASS_BACKUP_PASSPHRASE_FILE) the backup is encrypted and carries the key files.',
    ],
    examples: [
      'sightglass backup create',
      'sightglass backup create --backup-dir /mnt/nas/sightglass --json',
    ],
  },
  'backup list': {
    summary: 'list the backups, newest first',
    usage: 'backup list [--backup-dir FOLDER]',
    about: [],
    examples: ['sightglass backup list'],
  },
  'backup verify': {
    summary: 'prove a backup again: every byte, every event count, every audit chain',
    usage: 'backup verify PATH',
    about: ['Changes nothing and needs no data folder. Exit code 1 when anything is not as it was written.'],
    examples: [
      'sightglass backup verify sightglass-data/backups/sightglass-2026-06-23T031700Z-scheduled.backup',
    ],
  },
  restore: {
    summary: 'put a backup in the place of the data, or take that back',
    usage: 'restore PATH [--dry-run] [--yes] [--key-file FILE] [--allow-plain] | restore --undo',
    about: [
      'Proves the backup first and refuses while a server holds the folder. What was there moves aside whole, and one',
      'step (--undo) brings it back; --yes is needed when there is something to replace. The audit trail records it.',
      'Where a backup passphrase is configured, an unencrypted backup is refused without --allow-plain.',
    ],
    examples: [
      'sightglass restore nightly.backup --dry-run',
      'sightglass restore nightly.backup --data-dir ./other-data',
      'sightglass restore --undo',
    ],
  },
  'migrate status': {
    summary: 'say which schema the data has and what an upgrade would change',
    usage: 'migrate status',
    about: ['Changes nothing; a server may run meanwhile. Exit code 1 for data of a newer release.'],
    examples: ['sightglass migrate status --json'],
  },
  'migrate up': {
    summary: "bring the data to this release's schema, after a backup",
    usage: 'migrate up [--backup-dir FOLDER]',
    about: [
      'The same happens by itself when serve starts. All changes are one transaction: they happen whole or not at all.',
    ],
    examples: ['sightglass migrate up'],
  },
  'accept-loss': {
    summary: 'continue with a data folder that lost something',
    usage: 'accept-loss [--yes]',
    about: [
      'No start hides a loss: a missing database, a removed log, a missing secret.key, audit entries that audit-heads knows',
      'and the database lacks. This verb says what is missing. With --yes it sets aside the files that describe the lost',
      'data, records that in the audit trail, and the next start continues with what is there. Restore a backup first if',
      'you have one.',
    ],
    examples: ['sightglass accept-loss', 'sightglass accept-loss --yes'],
  },
  doctor: {
    summary: 'look for what is wrong or will be soon',
    usage: 'doctor [options of serve]',
    about: [
      'Looks at the folder, disk, database, jobs, keys, TLS, proxy settings and backups, and changes nothing. Beside a',
      'running server it judges the options of that server, else its own. Exit code 1 when a check fails; warnings leave',
      'it 0.',
    ],
    examples: ['sightglass doctor', 'sightglass doctor --json'],
  },
  ready: {
    summary: 'ask the running server whether it is ready',
    usage: 'ready',
    about: [
      'Asks /readyz of the server that holds the data folder. Exit code 0 when it is ready, 1 when it is not or when no',
      'server runs. The health check of the container uses it.',
    ],
    examples: ['sightglass ready'],
  },
  setup: {
    summary: 'bring organizations, sites, keys and endpoints to what a file says',
    usage: 'setup FILE [--dry-run]',
    about: [
      'The file is TOML; the operations guide at /docs/operations shows one. Keys stand in it by their SHA-256, signing',
      'secrets in files of their own. What is so already stays untouched, and so does what the file does not name. A',
      'mistake is told with its line, before anything is done. serve applies the file of --setup-file at every start.',
    ],
    examples: ['sightglass setup appliance.toml --dry-run', 'sightglass serve --setup-file appliance.toml'],
  },
  clock: {
    summary: 'say whether the clock jumped, and whether retention waits because of it',
    usage: 'clock',
    about: [
      'Compares the clock with the time that has passed. After a jump of more than 10 minutes nothing is deleted by age',
      'until the clock is back, `clock confirm` says that it is right, or it has been steady for 24 hours.',
    ],
    examples: ['sightglass clock --json'],
  },
  'clock confirm': {
    summary: 'say that the clock is right after it jumped',
    usage: 'clock confirm',
    about: ['Retention, pruning and expiry go by the clock again at once. The audit trail records it.'],
    examples: ['date && sightglass clock confirm'],
  },
  'log-level': {
    summary: 'change how much a running server logs',
    usage: 'log-level debug|info|warn|error',
    about: ['Holds until the server is started again; --log-level says what it begins with.'],
    examples: ['sightglass log-level debug'],
  },
  'service install': {
    summary: 'install and start the appliance as a systemd service',
    usage: 'service install [options of serve] [--dry-run]',
    about: [
      'Copies this executable to /usr/local/bin, writes a hardened unit (a user of its own, one writable folder), enables',
      'and starts it. Doing it again with a newer executable upgrades the service. --dry-run prints the unit alone.',
    ],
    examples: [
      'sudo sightglass service install --listen 0.0.0.0:443 --tls-cert /etc/tls/cert.pem --tls-key /etc/tls/key.pem',
      'sightglass service install --dry-run',
    ],
  },
  'service uninstall': {
    summary: 'stop and remove the service; the data stays',
    usage: 'service uninstall',
    about: [],
    examples: ['sudo sightglass service uninstall'],
  },
  'service status': {
    summary: 'say whether the service is installed and running',
    usage: 'service status',
    about: ['Exit code 1 unless it is.'],
    examples: ['sightglass service status --json'],
  },
  completions: {
    summary: 'print what makes a shell complete our commands',
    usage: 'completions bash|zsh|fish',
    about: ['For bash: source <(sightglass completions bash), or into /etc/bash_completion.d/sightglass.'],
    examples: [
      'sightglass completions bash > /etc/bash_completion.d/sightglass',
      'sightglass completions fish | source',
    ],
  },
  man: {
    summary: 'print the manual page',
    usage: 'man',
    about: [],
    examples: ['sightglass man > /usr/local/share/man/man1/sightglass.1'],
  },
  licenses: {
    summary: 'print the licences of the work of others inside the executable',
    usage: 'licenses',
    about: [],
    examples: ['sightglass licenses --json'],
  },
} satisfies { [verb: string]: VerbText }
