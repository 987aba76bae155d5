/** How long and how much of an organization's events is kept, and the dialog that changes it. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Problem } from '../../../components/problem.tsx'
import { useTask } from '../../../components/task.ts'
import { bytesText, counted } from '../../../text/format.ts'
import { operateApi, type Retention } from '../../../api/operate-api.ts'
import { session } from '../../../app/session.ts'
import { Field, FormDialog, textOf } from '../../../components/form-dialog.tsx'

const gibibyte = 1_024 ** 3

type Limit = 'days' | 'bytes' | 'auditDays'

/** "30 days", "2.0 GB", "no limit". */
export function limitText(kind: Limit, value: number | null): string {
  if (value === null) return 'no limit'
  return kind === 'bytes' ? bytesText(value) : counted(value, 'day')
}

/** A number from the form; null when the field is empty. */
export function wholeOf(text: string): number | null {
  const amount = Number(text.trim().replace(',', '.'))
  return text.trim() === '' || !(amount > 0) ? null : amount
}

export function RetentionLimits() {
  const known = useSignal<Retention | null>(null)
  const changing = useSignal(false)
  const { problem, run } = useTask()
  const load = () => run(async () => void (known.value = await operateApi.retention()))
  useEffect(() => void load(), [])
  if (problem.value) return <Problem error={problem.value} onRetry={() => void load()} />
  const limits = known.value
  if (!limits) return null
  const of = (kind: Limit) => (
    <dd>
      {limitText(kind, limits[kind] ?? limits.appliance[kind])}
      {limits[kind] === null && <span class="muted"> as the appliance was started</span>}
    </dd>
  )
  return (
    <>
      <dl class="settings-facts">
        <dt>Kept for</dt>
        {of('days')}
        <dt>At most</dt>
        {of('bytes')}
        <dt>Events take</dt>
        <dd>{bytesText(limits.eventBytes)}</dd>
        <dt>Audit log kept for</dt>
        {of('auditDays')}
      </dl>
      {session.value?.role === 'owner' ? (
        <button type="button" class="button" onClick={() => (changing.value = true)}>
          Change limits
        </button>
      ) : (
        <p class="muted">Limits are for owners; your role is {session.value?.role}.</p>
      )}
      {changing.value && (
        <LimitsDialog
          limits={limits}
          onSaved={(saved) => (known.value = saved)}
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
    const gib = wholeOf(textOf(form, 'gib'))
    const bytes = gib === null ? null : Math.round(gib * gibibyte)
    const days = wholeOf(textOf(form, 'days'))
    const auditDays = wholeOf(textOf(form, 'auditDays'))
    onSaved(await operateApi.setRetention({ days, bytes, auditDays }))
  }
  const gib = limits.bytes === null ? '' : `${limits.bytes / gibibyte}`
  return (
    <FormDialog title="Change limits" action="Save" onSubmit={save} onClose={onClose}>
      <Field
        name="days"
        label="Days"
        value={`${limits.days ?? ''}`}
        hint="Counted from arrival; empty: as the appliance was started"
      />
      <Field
        name="gib"
        label="Size in GB"
        value={gib}
        hint="The oldest events go first; empty: as the appliance was started"
      />
      <Field
        name="auditDays"
        label="Days of the audit log"
        value={`${limits.auditDays ?? ''}`}
        hint="A signed checkpoint stays in place of what went; empty: as the appliance was started"
      />
      <p>What goes beyond a limit is taken away for good. Counts by hour stay.</p>
    </FormDialog>
  )
}
