/** The newest requests and events that were not taken: when, by which key, why, and how the body began, as text. */
import { Text } from '../../../components/text.tsx'
import type { RejectedRequest } from '../../../api/ingest-api.ts'
import { Moment } from '../../../components/moment.tsx'

interface RejectedListProps {
  rejected: RejectedRequest[]
  labelOf: (keyId: string) => string
}

export function RejectedList({ rejected, labelOf }: RejectedListProps) {
  return (
    <>
      <h3>Not taken, the newest first</h3>
      {rejected.length === 0 ? (
        <p class="muted">Nothing has been refused or rejected.</p>
      ) : (
        <div class="panel table-panel" tabIndex={0} role="region" aria-label="Not taken">
          <table class="key-table rejected-table">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Key</th>
                <th scope="col">Why</th>
                <th scope="col">What was sent</th>
              </tr>
            </thead>
            <tbody>
              {rejected.map((one, n) => (
                <RejectedRow key={`${one.at} ${n}`} one={one} label={labelOf(one.keyId)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function RejectedRow({ one, label }: { one: RejectedRequest; label: string }) {
  return (
    <tr>
      <td>
        <Moment iso={one.at} />
      </td>
      <td>
        <Text value={label} max={36} />
      </td>
      <td>
        <code>{one.code}</code>
        {one.path !== '' && (
          <>
            {' '}
            at <Text value={one.path} mono max={60} />
          </>
        )}
        <p class="muted">
          <Text value={one.message} max={200} />
        </p>
      </td>
      <td>
        {one.excerpt === '' ? (
          <span class="muted">nothing that can be shown</span>
        ) : (
          <details>
            <summary>
              <Text value={one.excerpt.slice(0, 200)} mono max={40} />
            </summary>
            <pre>
              <Text value={one.excerpt} multiline />
            </pre>
          </details>
        )}
      </td>
    </tr>
  )
}
