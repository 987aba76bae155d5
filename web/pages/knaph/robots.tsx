/** The robots.txt of sites: the version in force, earlier ones and what each changed. */
import { useSignal } from '@preact/signals'
import { Problem } from '../../components/problem.tsx'
import { Text } from '../../components/text.tsx'
import { Minute } from '../../components/time.tsx'
import { registryApi, type RobotsDetail, type RobotsVersion } from '../../api/registry-api.ts'
import { mayManage, session } from '../../app/session.ts'
import { useQuery, useRecords } from '../../query/use-query.ts'
import { logsHref } from '../../range/filters.tsx'
import { bytesText, count, counted } from '../../text/format.ts'
import { SetRobots, TestRobots } from './robots-dialogs.tsx'

export function Robots({ siteId }: { siteId: string | null }) {
  const { data, error, refetch } = useRecords({ key: 'robots', fetch: registryApi.robotsSites })
  const dialog = useSignal<'set' | 'test' | null>(null)
  const sites = data.value
  if (error.value) return <Problem error={error.value} onRetry={refetch} />
  if (sites === null) return null
  const first = siteId ?? sites[0]?.siteId ?? ''
  const close = () => (dialog.value = null)
  return (
    <section class="panel lead robots" aria-label="robots.txt">
      <header class="lead-head">
        <h3>robots.txt</h3>
        <small class="muted">{counted(sites.length, 'site')}</small>
        <span class="robots-buttons">
          <button type="button" class="button" onClick={() => (dialog.value = 'test')}>
            Test a robots.txt
          </button>
          {mayManage(session.value) && (
            <button type="button" class="button" onClick={() => (dialog.value = 'set')}>
              Set robots.txt
            </button>
          )}
        </span>
      </header>
      <p class="muted">
        Each request by an agent in an access log is judged by the version in force at its time.{' '}
        {sites.length === 0 && (
          <>
            No robots.txt yet. Set one here, or start the server with <code>--robots SITE_ID=FILE</code>.
          </>
        )}
      </p>
      {sites.map((site) => (
        <SiteRobots key={`${site.siteId} ${site.version}`} newest={site} />
      ))}
      {dialog.value === 'set' && <SetRobots siteId={first} onDone={refetch} onClose={close} />}
      {dialog.value === 'test' && <TestRobots siteId={first} onClose={close} />}
    </section>
  )
}

const disallowed = (siteId: string): string =>
  logsHref({ siteIds: [siteId], type: 'agent.requested', robots: 'disallowed' })

function SiteRobots({ newest }: { newest: RobotsVersion }) {
  const wasOpened = useSignal(false)
  return (
    <details onToggle={(event) => (wasOpened.value ||= event.currentTarget.open)}>
      <summary>
        <span class="version-line">
          <b>
            <Text value={newest.siteId} max={48} />
          </b>
          <span>
            Version {newest.version}, in force since <Minute iso={newest.from} />
          </span>
          <span class="muted">{bytesText(newest.bytes)}</span>
        </span>
      </summary>
      <p>
        <a href={disallowed(newest.siteId)}>Disallowed requests</a>
      </p>
      {wasOpened.value && <Versions siteId={newest.siteId} />}
    </details>
  )
}

function Versions({ siteId }: { siteId: string }) {
  const { data, error, refetch } = useQuery({
    key: `robots versions/${JSON.stringify(siteId)}`,
    fetch: (signal) => registryApi.robotsVersions(siteId, signal),
  })
  if (error) return <Problem error={error} onRetry={refetch} />
  return (
    data && (
      <ol class="versions">
        {data.map((version) => (
          <Version key={version.version} version={version} />
        ))}
      </ol>
    )
  )
}

const setters: { [actor: string]: string } = { cli: 'the command line', system: 'a watched file' }

/** The text and the changes are fetched when the version is opened. */
function Version({ version }: { version: RobotsVersion }) {
  const wasOpened = useSignal(false)
  const { setBy, setByName } = version
  return (
    <li>
      <details onToggle={(event) => (wasOpened.value ||= event.currentTarget.open)}>
        <summary>
          <span class="version-line">
            <b>Version {version.version}</b>
            <span>
              <Minute iso={version.from} />
              {version.until ? (
                <>
                  {' '}
                  to <Minute iso={version.until} />
                </>
              ) : (
                ', in force'
              )}
            </span>
            <span class="muted">
              set by <Text value={setByName ?? setters[setBy] ?? 'a member'} max={48} />
            </span>
          </span>
        </summary>
        {wasOpened.value && <Detail version={version} />}
      </details>
    </li>
  )
}

function Detail({ version: { siteId, version } }: { version: RobotsVersion }) {
  const { data, error, refetch } = useQuery({
    key: `robots/${JSON.stringify([siteId, version])}`,
    fetch: (signal) => registryApi.robotsDetail(siteId, version, signal),
  })
  if (error) return <Problem error={error} onRetry={refetch} />
  if (data === null) return null
  const usage = data.notes.filter(({ kind }) => kind === 'content-usage')
  const unmatchedNotes = data.notes.filter(({ kind }) => kind === 'unmatched')
  return (
    <div>
      <p class="muted">
        {counted(data.rules, 'rule')}
        {data.ignored > 0 && `, ${counted(data.ignored, 'line')} that crawlers ignore`}
      </p>
      {unmatchedNotes.map(({ line, text }) => (
        <p key={line}>
          Line {line}: no crawler is named <Text value={text} max={120} mono />. Write one name per line.
        </p>
      ))}
      {usage.map(({ line, text }) => (
        <p key={line}>
          Line {line}: content usage <Text value={text} max={120} mono />
        </p>
      ))}
      <Changes {...data} />
      <Lines text={data.text} />
    </div>
  )
}

function Changes({ before: previousVersion, changes }: Pick<RobotsDetail, 'before' | 'changes'>) {
  if (previousVersion === null || changes === null) return <p class="muted">No earlier version is stored.</p>
  const { added, removed, list } = changes
  return (
    <>
      <p>
        {count(added)} added and {counted(removed, 'removed line', 'removed lines')} since version{' '}
        {previousVersion}
      </p>
      <ul class="line-changes">
        {list.map(({ kind, line, text }) => (
          <li key={`${kind} ${line}`} class={kind}>
            <span aria-hidden="true">{kind === 'added' ? '+' : '−'}</span>
            <span class="visually-hidden">{kind}, line </span>
            <span class="muted">{line}</span> <Text value={text} mono />
          </li>
        ))}
      </ul>
    </>
  )
}

const linesShownMax = 1_000

function Lines({ text }: { text: string }) {
  const lines = text.split(/\r\n|\r|\n/)
  return (
    <details>
      <summary>Text</summary>
      <div class="robots-lines" tabIndex={0} role="region" aria-label="Text of the robots.txt">
        <ol>
          {lines.slice(0, linesShownMax).map((line, index) => (
            <li key={index}>
              <Text value={line} mono />
            </li>
          ))}
        </ol>
      </div>
      {lines.length > linesShownMax && <p class="muted">The first {count(linesShownMax)} lines are shown.</p>}
    </details>
  )
}
