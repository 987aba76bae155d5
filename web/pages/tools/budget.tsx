/** The tokens of each page's tools compared with a budget. */
import { signal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { Text } from '../../components/text.tsx'
import { count, counted } from '../../text/format.ts'
import { writePreference, readPreference } from '../../app/preferences.ts'
import { place, withQuery } from '../../app/router.ts'
import type { PageCost } from './rows.ts'

const budgetDefault = 4_000
const budgetMax = 10_000_000
const shownMax = 8

/** The budget stored in this browser; null: not read yet. */
const chosen = signal<number | null>(null)

function readBudget(text: string | null): number | null {
  if (text === null || !/^[0-9]{1,8}$/.test(text.trim())) return null
  const tokens = Number(text)
  return tokens >= 1 && tokens <= budgetMax ? tokens : null
}

function budget(): number {
  return chosen.value ?? readBudget(readPreference('tools.budget')) ?? budgetDefault
}

const pageName = (page: string): string => (page === '' ? 'no page' : page)

/** Lists pages over the budget as text, too, because colour alone is not accessible. */
export function Budget({ pages, showSite }: { pages: PageCost[]; showSite: boolean }) {
  const field = useId()
  const tokenBudget = budget()
  const overCount = pages.filter((page) => page.tokens > tokenBudget).length
  const highest = Math.max(tokenBudget, ...pages.map((page) => page.tokens))
  const set = (text: string): void => {
    const tokens = readBudget(text)
    if (tokens === null) return
    chosen.value = tokens
    writePreference('tools.budget', `${tokens}`)
  }
  return (
    <section class="panel budget" aria-label="Token cost per page">
      <header>
        <h2>Tokens per page</h2>
        <label for={field}>
          Budget{' '}
          <input
            id={field}
            inputMode="numeric"
            size={6}
            value={`${tokenBudget}`}
            title="Stored in this browser"
            onChange={(event) => {
              set(event.currentTarget.value)
              event.currentTarget.value = `${budget()}`
            }}
          />
        </label>
      </header>
      <p class="muted">
        {overCount === 0
          ? `${counted(pages.length, 'page')}, all within ${count(tokenBudget)} tokens.`
          : `${count(overCount)} of ${counted(pages.length, 'page')} over ${count(tokenBudget)} tokens.`}
      </p>
      <ul>
        {pages.slice(0, shownMax).map((page) => (
          <PageLine
            key={`${page.siteId}\n${page.page}`}
            cost={page}
            of={tokenBudget}
            highest={highest}
            showSite={showSite}
          />
        ))}
      </ul>
      {pages.length > shownMax && (
        <p class="muted">{counted(pages.length - shownMax, 'more page')} in the table below.</p>
      )}
    </section>
  )
}

function PageLine(props: { cost: PageCost; of: number; highest: number; showSite: boolean }) {
  const { cost, of: tokenBudget, highest, showSite } = props
  const isOver = cost.tokens > tokenBudget
  const search = withQuery(place.value.search, { page: [cost.page], show: [] })
  return (
    <li class={isOver ? 'over' : ''}>
      <a href={`${place.value.path}${search}`}>
        {showSite && (
          <>
            <Text value={cost.siteId} max={18} /> ·{' '}
          </>
        )}
        <Text value={pageName(cost.page)} max={28} />
      </a>
      <span class="budget-track" aria-hidden="true">
        <i style={{ width: `${(100 * cost.tokens) / highest}%` }} />
        <b style={{ left: `${(100 * tokenBudget) / highest}%` }} />
      </span>
      <span class="budget-number">
        {cost.estimated && '≈ '}
        <b>{count(cost.tokens)}</b>
        <small>{isOver ? `${count(cost.tokens - tokenBudget)} over` : counted(cost.tools, 'tool')}</small>
      </span>
    </li>
  )
}
