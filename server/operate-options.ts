/** The options around backups, restores and the running of the appliance. */
import {
  cronOrOff,
  daysOrOff,
  flag,
  folderPath,
  plainText,
  sizeBytes,
  sizeOrOff,
  wholeNumber,
} from './option-values.ts'
import { option } from './option-form.ts'

const serving = ['serve', 'config'] as const
const withBackups = ['backup create', 'backup list', 'backup verify', 'migrate up', 'doctor'] as const

export const operateOptions = {
  'tls-cert': option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'the certificate chain (PEM): everything is https then, and a renewed file is taken up by itself',
    verbs: serving,
  }),
  'tls-key': option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'the private key (PEM) of the certificate',
    verbs: serving,
  }),
  'retention-days': option({
    read: daysOrOff,
    value: 'DAYS|off',
    default: '90',
    help: 'how long events are kept after they arrived; counts stay 400 days',
    verbs: serving,
  }),
  'retention-bytes': option({
    read: sizeOrOff,
    value: 'SIZE|off',
    default: 'off',
    help: 'how much the events of one organization may take; the oldest go first',
    verbs: serving,
  }),
  'backup-dir': option({
    read: folderPath,
    value: 'FOLDER',
    default: null,
    help: 'where backups go; left out: the folder backups inside the data folder',
    verbs: [...serving, ...withBackups],
  }),
  'backup-cron': option({
    read: cronOrOff,
    value: 'CRON|off',
    default: '17 3 * * *',
    help: 'when a backup is made by itself (UTC), or off',
    verbs: serving,
  }),
  'backup-keep': option({
    read: wholeNumber(1, 1_000),
    value: 'COUNT',
    default: '3',
    help: 'how many of the backups made by themselves are kept',
    verbs: serving,
  }),
  'backup-passphrase': option({
    read: plainText,
    value: 'PASSPHRASE',
    default: null,
    help: 'encrypts backups, and opens encrypted ones',
    verbs: [...serving, 'backup create', 'backup verify', 'restore', 'migrate up'],
    environmentOnly: true,
    secret: true,
  }),
  'memory-limit': option({
    read: sizeBytes,
    value: 'SIZE',
    default: null,
    help: 'memory it may use; left out: all there is. Near it reads wait, then everything, then it restarts',
    verbs: serving,
  }),
  'dry-run': option({
    read: flag,
    value: null,
    default: 'false',
    help: 'say what would happen; change nothing',
    verbs: ['restore', 'service install'],
    flagOnly: true,
  }),
  'unit-dir': option({
    read: folderPath,
    value: 'FOLDER',
    default: '/etc/systemd/system',
    help: 'where the unit of the service goes',
    verbs: ['service install', 'service uninstall', 'service status'],
    flagOnly: true,
  }),
  executable: option({
    read: folderPath,
    value: 'FILE',
    default: '/usr/local/bin/sightglass',
    help: 'where this executable is copied to, for the service to start',
    verbs: ['service install'],
    flagOnly: true,
  }),
  undo: option({
    read: flag,
    value: null,
    default: 'false',
    help: 'bring back what the newest restore moved aside',
    verbs: ['restore'],
    flagOnly: true,
  }),
  'key-file': option({
    read: folderPath,
    value: 'FILE',
    default: null,
    help: 'a copy of the secret.key that belongs to an unencrypted backup',
    verbs: ['restore'],
    flagOnly: true,
  }),
}
