/** System: which Sightglass this is and where it takes events. */
import { count } from '../../format.ts'
import { overview, session } from '../../session.ts'

export function System() {
  const who = session.value
  if (!who) return null
  return (
    <section class="settings-section">
      <dl class="settings-facts">
        <dt>Version</dt>
        <dd>{who.version}</dd>
        <dt>Ingest address</dt>
        <dd>
          <code>{who.ingestUrl}</code>
        </dd>
        <dt>Dashboard address</dt>
        <dd>
          <code>{window.location.origin}</code>
        </dd>
        {overview.value && (
          <>
            <dt>Events kept</dt>
            <dd>{count(overview.value.total)}</dd>
          </>
        )}
      </dl>
      <p class="muted">Storage, jobs and health are not shown here yet.</p>
    </section>
  )
}
