/** Lines of access logs that were lost: how many, why, and what to do. */
import type { ComponentChildren } from 'preact'
import type { SourcesView } from '../../../api/operate-api.ts'
import { Text } from '../../../components/text.tsx'
import { count, counted } from '../../../text/format.ts'

type Log = SourcesView['logs'][number]
type Syslog = SourcesView['syslog'][number]

/** One place where lines were lost. */
export interface Loss {
  name: string
  siteId: string
  summary: string
  advice: Advice
}

type Advice = 'other format' | 'mixed log' | 'drain' | 'syslog' | 'dropped'

/** A log of which more lines than this are bad has another format, and not a few strange lines. */
const strangeShareMax = 0.25

function shareText(bad: number, lines: number): string {
  const percent = (bad / lines) * 100
  return percent < 1 ? 'less than 1\u00a0%' : `${Math.round(percent)}\u00a0%`
}

const badText = (bad: number, lines: number): string =>
  `${count(bad)} of ${counted(lines, 'line')} (${shareText(bad, lines)})`

function lossOfLog({ path, siteId, lines, bad, format }: Log): Loss {
  const summary = `${badText(bad, lines)} did not fit the format ${format}`
  return { name: path, siteId, summary, advice: bad > lines * strangeShareMax ? 'other format' : 'mixed log' }
}

/** The sums of drains contain what came by syslog, which is named by address. */
function lossOfDrain({ path, siteId, lines, bad, format }: Log, syslog: readonly Syslog[]): Loss | null {
  const ofSite = syslog.filter((address) => address.siteId === siteId)
  const badByDrain = bad - ofSite.reduce((sum, address) => sum + address.bad, 0)
  const byDrain = lines - ofSite.reduce((sum, address) => sum + address.received, 0)
  if (badByDrain <= 0) return null
  const summary = `${badText(badByDrain, Math.max(byDrain, badByDrain))} did not fit the format ${format}`
  return { name: path, siteId, summary, advice: 'drain' }
}

export function lossesOf({ logs, syslog }: Pick<SourcesView, 'logs' | 'syslog'>): Loss[] {
  const losses: Loss[] = []
  for (const log of logs) {
    const loss = log.isDrain ? lossOfDrain(log, syslog) : log.bad > 0 ? lossOfLog(log) : null
    if (loss !== null) losses.push(loss)
  }
  for (const { listen, siteId, received, bad, dropped } of syslog) {
    if (bad > 0) {
      const summary = `${badText(bad, received)} fit no format since the server started`
      losses.push({ name: listen, siteId, summary, advice: 'syslog' })
    }
    if (dropped > 0) {
      const summary = `${counted(dropped, 'line')} dropped since the server started`
      losses.push({ name: listen, siteId, summary, advice: 'dropped' })
    }
  }
  return losses
}

const advices: { readonly [advice in Advice]: ComponentChildren } = {
  'other format': (
    <>
      This log probably has a second format. <code>sightglass import access</code> with <code>--dry-run</code>{' '}
      lists the first ones. Write each format to a log of its own.
    </>
  ),
  'mixed log': (
    <>
      <code>sightglass import access</code> with <code>--dry-run</code> lists the first ones. Errors and other
      lines that are no requests can stay.
    </>
  ),
  drain: (
    <>
      The answer to each request lists the first ones, and <a href="/settings/ingest-health">Ingest health</a>{' '}
      has the newest requests with bad lines.
    </>
  ),
  syslog: (
    <>
      Send only access logs to this address, in one of the formats of the{' '}
      <a href="/docs/access-logs" data-native>
        guide
      </a>
      .
    </>
  ),
  dropped: (
    <>
      More lines arrived at once than could be stored, or a line was too long. Let the server write a file,
      and follow it with <code>sightglass watch</code>.
    </>
  ),
}

export function LostLines({ view }: { view: SourcesView }) {
  const losses = lossesOf(view)
  if (losses.length === 0) return null
  return (
    <div class="panel attention">
      <h3>Lost lines</h3>
      <p class="muted">No agent in these lines is counted.</p>
      <ul aria-label="Lost lines">
        {losses.map(({ name, siteId, summary, advice }) => (
          <li key={JSON.stringify([siteId, name, advice])}>
            <strong>
              <Text value={siteId} max={36} />, <Text value={name} max={60} />
            </strong>
            : {summary}. <span class="muted">{advices[advice]}</span>
          </li>
        ))}
      </ul>
    </div>
  )
}
