/** The retention limits of the organization: days, size and audit log, and the dialog that changes them. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { bytesText, counted } from '../../../text/format.ts'
import { operateApi, type Retention } from '../../../api/operate-api.ts'
import { session } from '../../../app/session.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'
import { RoleNote } from '../role-note.tsx'

const gibibyte = 1_024 ** 3

type Limit = 'days' | 'bytes' | 'auditDays'

/** "30 days", "2.0 GB", "no limit". */
export function limitText(kind: Limit, value: number | null): string {
  if (value === null) return 'no limit'
  return kind === 'bytes' ? bytesText(value) : counted(value, 'day')
}

/** A positive number from the form; null if the field is empty. */
export function amountOf(text: string): number | null {
  const amount = Number(text.trim().replace(',', '.'))
  return text.trim() === '' || !(amount > 0) ? null : amount
}

export function RetentionLimits() {
  const retention = useSignal<Retention | null>(null)
  const changing = useSignal(false)
  const { problem, run } = useTask()
  const load = () => run(async () => void (retention.value = await operateApi.retention()))
  useEffect(() => void load(), [])
  if (problem.value) return <Problem error={problem.value} onRetry={() => void load()} />
  const limits = retention.value
  if (!limits) return null
  const of = (kind: Limit) => (
    <dd>
      {limitText(kind, limits[kind] ?? limits.appliance[kind])}
      {limits[kind] === null && <span class="muted"> (server default)</span>}
    </dd>
  )
  return (
    <>
      <dl class="settings-facts">
        <dt>Retention</dt>
        {of('days')}
        <dt>Size limit</dt>
        {of('bytes')}
        <dt>Current size</dt>
        <dd>{bytesText(limits.eventBytes)}</dd>
        <dt>Audit log retention</dt>
        {of('auditDays')}
      </dl>
      {session.value?.role === 'owner' ? (
        <button type="button" class="button" onClick={() => (changing.value = true)}>
          Change limits
        </button>
      ) : (
        <RoleNote text="Only owners can change limits." />
      )}
      {changing.value && (
        <LimitsDialog
          limits={limits}
          onSaved={(saved) => (retention.value = saved)}
          onClose={() => (changing.value = false)}
        />
      )}
    </>
  )
}

interface LimitsDialogProps {
  limits: Retention
  onSaved: (saved: Retention) => void
  onClose: () => void
}

function LimitsDialog({ limits, onSaved, onClose }: LimitsDialogProps) {
  const save = async (form: FormData): Promise<void> => {
    const gib = amountOf(textOf(form, 'gib'))
    const bytes = gib === null ? null : Math.round(gib * gibibyte)
    const days = amountOf(textOf(form, 'days'))
    const auditDays = amountOf(textOf(form, 'auditDays'))
    onSaved(await operateApi.setRetention({ days, bytes, auditDays }))
  }
  const gib = limits.bytes === null ? '' : `${limits.bytes / gibibyte}`
  return (
    <FormDialog title="Change limits" action="Save" onSubmit={save} onClose={onClose}>
      <Field
        name="days"
        label="Retention in days"
        value={`${limits.days ?? ''}`}
        hint="Counted from arrival. Empty: server default."
      />
      <Field
        name="gib"
        label="Size limit in GB"
        value={gib}
        hint="The oldest events are deleted first. Empty: server default."
      />
      <Field
        name="auditDays"
        label="Audit log retention in days"
        value={`${limits.auditDays ?? ''}`}
        hint="A signed checkpoint replaces deleted entries. Empty: server default."
      />
      <p>Events beyond a limit are deleted permanently. Hourly counts remain.</p>
    </FormDialog>
  )
}
