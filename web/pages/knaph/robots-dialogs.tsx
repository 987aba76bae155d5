/** The dialogs of robots.txt: setting a version, and testing a text against the requests of the last 30 days. */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { registryApi, type RobotsTest } from '../../api/registry-api.ts'
import { Dialog, Field, FormDialog, textOf } from '../../components/dialog.tsx'
import { Problem, useTask } from '../../components/problem.tsx'
import { RecordTable } from '../../components/record-table.tsx'
import { Text } from '../../components/text.tsx'
import { minuteTime, count, counted } from '../../text/format.ts'

const bytesMax = 500 * 1024

export function SetRobots(props: { siteId: string; onDone: () => void; onClose: () => void }) {
  const submit = async (form: FormData): Promise<void> => {
    const from = textOf(form, 'from')
    await registryApi.setRobots({
      siteId: textOf(form, 'siteId'),
      text: textOf(form, 'text'),
      ...(from === '' ? {} : { from: new Date(from).toISOString() }),
    })
    props.onDone()
  }
  return (
    <FormDialog title="Set robots.txt" action="Set robots.txt" onSubmit={submit} onClose={props.onClose}>
      <Field name="siteId" label="Site" value={props.siteId} maxLength={200} required autofocus />
      <FileField />
      <Field
        name="from"
        label="In force since (optional)"
        type="datetime-local"
        hint="Empty means now. A time in the past counts for logs that are imported afterwards."
      />
    </FormDialog>
  )
}

/** A text area that a chosen file fills. */
function FileField() {
  const id = useId()
  const fileId = useId()
  const text = useSignal('')
  const problem = useSignal('')
  const read = async (file: File | undefined): Promise<void> => {
    problem.value = ''
    if (file === undefined) return
    if (file.size > bytesMax) problem.value = 'The file is longer than 500 KiB. Choose another one.'
    else text.value = await file.text()
  }
  return (
    <div class="field">
      <label for={id}>Text</label>
      <textarea
        id={id}
        name="text"
        rows={10}
        class="mono"
        spellcheck={false}
        maxLength={bytesMax}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <label for={fileId}>Or choose a file</label>
      <input
        id={fileId}
        type="file"
        accept=".txt,text/plain"
        onChange={(event) => void read(event.currentTarget.files?.[0])}
      />
      {problem.value !== '' && <p role="alert">{problem.value}</p>}
    </div>
  )
}

export function TestRobots({ siteId, onClose }: { siteId: string; onClose: () => void }) {
  const { busy, problem, run } = useTask()
  const result = useSignal<RobotsTest | null>(null)
  return (
    <Dialog title="Test a robots.txt" class="wide" onClose={onClose}>
      <form
        class="dialog-form"
        onSubmit={(event) => {
          event.preventDefault()
          const form = new FormData(event.currentTarget)
          const testInput = { siteId: textOf(form, 'siteId'), text: textOf(form, 'text') }
          void run(async () => void (result.value = await registryApi.testRobots(testInput)))
        }}
      >
        <Field name="siteId" label="Site" value={siteId} maxLength={200} required autofocus />
        <FileField />
        {problem.value && <Problem error={problem.value} />}
        {result.value && <Result result={result.value} />}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>
            Close
          </button>
          <button type="submit" class="button primary" aria-disabled={busy.value}>
            Test
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Result({ result }: { result: RobotsTest }) {
  const { requests, disallowed, wasDisallowed, complete, exactSinceMs } = result
  const { queryRules, ignored, unmatched } = result
  if (requests === 0)
    return <p role="status">No requests by agents in the last 30 days. Import an access log first.</p>
  return (
    <>
      <p role="status">
        {counted(requests, 'request')} of{' '}
        {complete ? 'the last 30 days' : `the time since ${minuteTime(exactSinceMs)}`}:{' '}
        <b>{count(disallowed)} would be disallowed</b>, {count(wasDisallowed)} were.
        {queryRules > 0 &&
          ` ${counted(queryRules, 'rule')} with a query cannot match: queries are not stored.`}
        {ignored > 0 && ` Crawlers ignore ${counted(ignored, 'line')} of this text.`}
        {unmatched > 0 &&
          ` No crawler is named by ${counted(unmatched, 'User-agent line')}. Write one name per line.`}
      </p>
      <RecordTable
        label="Agents"
        rows={result.agents}
        keyOf={({ name }) => name}
        columns={[
          { name: 'Agent', cell: ({ name }) => <Text value={name === '' ? '(no name)' : name} max={40} /> },
          { name: 'Requests', number: true, cell: (row) => count(row.requests) },
          { name: 'Would be disallowed', number: true, cell: (row) => count(row.disallowed) },
          { name: 'Was disallowed', number: true, cell: (row) => count(row.wasDisallowed) },
          {
            name: 'Pages',
            cell: ({ pages }) => (
              <ul>
                {pages.map(({ page, line }) => (
                  <li key={page}>
                    <Text value={page} max={48} mono /> <span class="muted">line {line}</span>
                  </li>
                ))}
              </ul>
            ),
          },
        ]}
      />
    </>
  )
}
