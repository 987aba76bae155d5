/** The newest rejected requests and events: time, key, reason and the start of the body as text. */
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
      <h3>Rejected requests, newest first</h3>
      {rejected.length === 0 ? (
        <p class="muted">No rejected requests or events.</p>
      ) : (
        <div class="panel table-panel" tabIndex={0} role="region" aria-label="Rejected requests">
          <table class="key-table rejected-table">
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Key</th>
                <th scope="col">Reason</th>
                <th scope="col">Body excerpt</th>
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
          <span class="muted">not available</span>
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
