/** The value of a filter by key, with the label of the key beside its id. */
import { api } from '../api/api.ts'
import type { Query } from '../query/query.ts'
import { useQuery } from '../query/use-query.ts'
import { Text } from './text.tsx'

const labels: Query<{ [id: string]: string }> = {
  key: 'key-labels',
  fetch: async (signal) => (await api.keyLabels(signal)).labels,
}

const isKeyId = (value: string): boolean => value.startsWith('key_')

/** A filter's value; '' matches events without the field. */
export function FilterValue({ name, value }: { name: string; value: string }) {
  if (value === '') return <>none</>
  if ((name === 'key' || name === 'observedBy') && isKeyId(value)) return <KeyLabel id={value} />
  return <Text value={value} max={32} />
}

function KeyLabel({ id }: { id: string }) {
  const label = useQuery(labels).data?.[id]
  if (label === undefined) return <Text value={id} max={32} mono />
  return (
    <>
      <Text value={label} max={32} /> <Text value={id} max={20} mono />
    </>
  )
}
