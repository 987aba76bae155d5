/** A value that filters the page when clicked, with a link to its events in Logs. */
import './value-link.css'
import type { ComponentChildren } from 'preact'
import { visibleText } from '../text/text.ts'
import { canFilter, type ChosenFilter, filterable, filterHref } from './filters.tsx'

interface ValueLinkProps {
  filter: ChosenFilter
  logs?: string | undefined // where Logs has this filter
  children: ComponentChildren
}

const shownMax = 60

export function ValueLink({ filter, logs, children }: ValueLinkProps) {
  if (!canFilter()) return logs === undefined ? <>{children}</> : <a href={logs}>{children}</a>
  const what = `${filterable[filter.name]?.word ?? filter.name} ${visibleText(filter.value).slice(0, shownMax)}`
  return (
    <span class="value-link">
      <a href={filterHref(filter)} title={`Filter by ${what}`}>
        {children}
      </a>
      {logs !== undefined && (
        <a class="to-logs" href={logs} aria-label={`Open ${what} in Logs`} title="Open in Logs" />
      )}
    </span>
  )
}
