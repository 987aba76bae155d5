/** Settings, Backups, for operators: create, verify, download and delete backups; schedule and last result. */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { bytesText, count, minuteTime } from '../../../text/format.ts'
import { type Backup, type Backups as List, operateApi } from '../../../api/operate-api.ts'
import { session } from '../../../app/session.ts'
import { FormDialog } from '../../../components/dialog.tsx'
import { Moment } from '../../../components/time.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { refreshWhile } from '../../../query/query.ts'
import { useRecords } from '../../../query/use-query.ts'

/** A running backup or verification is polled because no stream reports it. */
const pollMs = 1_000

export function Backups() {
  if (!session.value?.account.operator) {
    return (
      <section class="settings-section">
        <p>
          Only operators of the appliance can manage backups, because they contain the data of every
          organization.
        </p>
      </section>
    )
  }
  return <BackupList />
}

const isBusy = ({ running, checking }: List): boolean => running !== null || checking !== null

function BackupList() {
  const policy = useMemo(() => refreshWhile<List>(isBusy, pollMs), [])
  const {
    data: backupList,
    error,
    refetch,
    replace,
  } = useRecords<List>({ key: 'backups', fetch: operateApi.backups }, policy)
  const removing = useSignal<Backup | null>(null)
  const { problem, busy, run } = useTask()
  const failure = problem.value ?? error.value
  const change = (work: () => Promise<List>) => void run(async () => replace(await work()))
  if (backupList.value?.elsewhere) return <Elsewhere how={backupList.value.elsewhere} />
  return (
    <section class="settings-section">
      <p class="about">
        Each backup contains all data and is verified after it is written. Restore one on the server with{' '}
        <code>sightglass restore</code>.
      </p>
      <button
        type="button"
        class="button primary"
        aria-disabled={busy.value || backupList.value?.running != null}
        onClick={() => backupList.value?.running == null && change(operateApi.startBackup)}
      >
        {backupList.value?.running == null ? 'Back up now' : 'Backing up …'}
      </button>
      {failure && <Problem error={failure} onRetry={refetch} />}
      {backupList.value && <Schedule list={backupList.value} />}
      {backupList.value?.backups.length === 0 && (
        <p class="muted">No backups yet. Back up now to create the first one.</p>
      )}
      {backupList.value && backupList.value.backups.length > 0 && (
        <BackupTable
          list={backupList.value}
          onVerify={(backup) => change(() => operateApi.proveBackup(backup.name))}
          onRemove={(backup) => (removing.value = backup)}
        />
      )}
      {backupList.value && backupList.value.others > 0 && (
        <p class="muted">
          Backups of other appliances in this folder, or not provably of this one: {backupList.value.others}.
          They are never deleted.
        </p>
      )}
      {removing.value && (
        <FormDialog
          title="Delete backup"
          action="Delete backup"
          danger
          onSubmit={async () => {
            const name = removing.value?.name
            if (name !== undefined) replace(await operateApi.deleteBackup(name))
          }}
          onClose={() => (removing.value = null)}
        >
          <p>
            Delete <strong>{removing.value.name}</strong>? This cannot be undone.
          </p>
        </FormDialog>
      )}
    </section>
  )
}

/** Of a database that several nodes share. */
function Elsewhere({ how: method }: { how: string }) {
  return (
    <section class="settings-section">
      <p>
        This database is backed up outside of Sightglass: <Text value={method} max={200} />. The guide{' '}
        <a href="/docs/nodes#backup" data-native>
          Several nodes
        </a>{' '}
        shows the commands.
      </p>
    </section>
  )
}

function Schedule({ list }: { list: List }) {
  const { schedule, lastRun } = list
  return (
    <dl class="settings-facts">
      <dt>Schedule</dt>
      <dd>
        {schedule.cron === null ? (
          <>
            None. Set <code>--backup-cron</code> to schedule backups.
          </>
        ) : (
          <>
            <code>{schedule.cron}</code>, keeps the newest {schedule.keep}
            {schedule.nextAt !== null && `, next at ${minuteTime(Date.parse(schedule.nextAt))}`}
          </>
        )}
      </dd>
      <dt>Encryption</dt>
      <dd>{schedule.encrypted ? 'Passphrase' : 'None'}</dd>
      {lastRun !== null && (
        <>
          <dt>Last backup</dt>
          <dd>
            <span class={lastRun.ok ? 'chip allow' : 'chip error'}>
              {lastRun.ok ? 'succeeded' : 'failed'}
            </span>{' '}
            <Moment iso={lastRun.at} />: <Text value={lastRun.message} max={300} />
          </dd>
        </>
      )}
    </dl>
  )
}

interface BackupTableProps {
  list: List
  onVerify: (backup: Backup) => void
  onRemove: (backup: Backup) => void
}

function BackupTable({ list, onVerify, onRemove }: BackupTableProps) {
  return (
    <RecordTable
      label="Backups"
      rows={list.backups}
      keyOf={({ name }) => name}
      columns={[
        { name: 'Backup', cell: ({ name }) => <Text value={name} max={48} mono /> },
        {
          name: 'Created',
          cell: ({ createdAt, reason }) => (
            <>
              {createdAt !== null && <Moment iso={createdAt} />}
              {reason !== null && <small class="sub-line muted">{reason}</small>}
            </>
          ),
        },
        { name: 'Events', number: true, cell: ({ events }) => events !== null && count(events) },
        { name: 'Size', number: true, cell: ({ bytes }) => bytesText(bytes) },
        {
          name: 'State',
          cell: (backup) => <BackupState backup={backup} checking={list.checking === backup.name} />,
        },
      ]}
      actions={(backup) => (
        <>
          <RowButton
            label="Verify"
            of={backup.name}
            disabled={list.checking !== null}
            onClick={() => onVerify(backup)}
          />{' '}
          <a
            class="button"
            href={operateApi.backupHref(backup.name)}
            aria-label={`Download ${backup.name}`}
            download
            data-native
          >
            Download
          </a>{' '}
          <RowButton label="Delete" of={backup.name} onClick={() => onRemove(backup)} />
        </>
      )}
    />
  )
}

function BackupState({ backup, checking }: { backup: Backup; checking: boolean }) {
  if (checking) return <span class="chip plain">verifying</span>
  const problem = backup.problem ?? (backup.checked?.ok === false ? backup.checked.problems.join(' ') : null)
  if (problem !== null)
    return (
      <span class="chip error" title={problem}>
        damaged
      </span>
    )
  const provenAt = backup.checked?.at ?? backup.provenAt
  return (
    <>
      <span class={provenAt === null ? 'chip plain' : 'chip allow'}>
        {provenAt === null ? 'not verified' : 'verified'}
      </span>
      {provenAt !== null && (
        <small class="sub-line muted">
          <Moment iso={provenAt} />
        </small>
      )}
    </>
  )
}
