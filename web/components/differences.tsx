/** The differences between two versions of pushed JSON, path by path, old beside new. */
import './differences.css'
import type { Difference, Json } from '../api/registry-api.ts'
import { counted } from '../text/format.ts'
import { escapeHidden } from '../text/text.ts'
import { Text } from './text.tsx'

const shownMax = 30
const charsMax = 600

/** "/inputSchema/properties/q" → "inputSchema › properties › q" */
export function pathLabel(pointer: string): string {
  if (pointer === '') return 'whole document'
  return pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join(' › ')
}

export function Differences({ list }: { list: Difference[] }) {
  if (list.length === 0) return null
  return (
    <>
      <dl class="differences">
        {list.slice(0, shownMax).map((difference) => (
          <div key={difference.path}>
            <dt>
              <span class={`change-word ${difference.change}`}>{difference.change}</span>{' '}
              <Text value={pathLabel(difference.path)} max={120} mono />
            </dt>
            {difference.change !== 'added' && (
              <Side name="before" has={'before' in difference} value={difference.before} />
            )}
            {difference.change !== 'removed' && (
              <Side name="after" has={'after' in difference} value={difference.after} />
            )}
          </div>
        ))}
      </dl>
      {list.length > shownMax && <p class="muted">{counted(list.length - shownMax, 'more change')}.</p>}
    </>
  )
}

function Side(props: { name: 'before' | 'after'; has: boolean; value: Json | undefined }) {
  const { name, has, value } = props
  return (
    <dd class={name}>
      <span class="visually-hidden">{name}: </span>
      {has ? <Value value={value ?? null} /> : <span class="muted">too long to show</span>}
    </dd>
  )
}

function Value({ value }: { value: Json }) {
  if (typeof value === 'string') return <Text value={value.slice(0, charsMax)} multiline />
  return <code>{escapeHidden(JSON.stringify(value, null, 1)).slice(0, charsMax)}</code>
}
