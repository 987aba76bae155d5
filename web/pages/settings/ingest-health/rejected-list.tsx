/** The newest rejected requests and events: time, key, reason and the start of the body as text. */
import { Text } from '../../../components/text.tsx'
import type { RejectedRequest } from '../../../api/ingest-api.ts'
import { Moment } from '../../../components/time.tsx'
import { RecordTable } from '../../../components/record-table.tsx'

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
        <RecordTable
          label="Rejected requests"
          class="rejected-table"
          firstIsName={false}
          rows={rejected}
          keyOf={({ at }, n) => `${at} ${n}`}
          columns={[
            { name: 'Time', cell: ({ at }) => <Moment iso={at} /> },
            { name: 'Key', cell: ({ keyId }) => <Text value={labelOf(keyId)} max={36} /> },
            { name: 'Reason', cell: (one) => <Reason {...one} /> },
            { name: 'Body excerpt', cell: ({ excerpt }) => <Excerpt excerpt={excerpt} /> },
          ]}
        />
      )}
    </>
  )
}

function Reason({ code, path, message }: Pick<RejectedRequest, 'code' | 'path' | 'message'>) {
  return (
    <>
      <code>{code}</code>
      {path !== '' && (
        <>
          {' '}
          at <Text value={path} mono max={60} />
        </>
      )}
      <p class="muted">
        <Text value={message} max={200} />
      </p>
    </>
  )
}

function Excerpt({ excerpt }: Pick<RejectedRequest, 'excerpt'>) {
  if (excerpt === '') return <span class="muted">not available</span>
  return (
    <details>
      <summary>
        <Text value={excerpt.slice(0, 200)} mono max={40} />
      </summary>
      <pre>
        <Text value={excerpt} multiline />
      </pre>
    </details>
  )
}
