/** The navigation: pages by group with counts, the organization, sign-out, time zone and theme. */
import './navigation.css'
import { useSignal } from '@preact/signals'
import { compactCount, count } from '../text/format.ts'
import { measureOf } from '../text/measures.ts'
import { lengthName, rangeWords } from '../range/range.ts'
import { asApiError, session, signOut, totals } from '../app/session.ts'
import { path } from '../app/router.ts'
import { type PageRoute, routeOf, routes } from '../routes.ts'
import { Text, visibleText } from '../components/text.tsx'
import { theme, themes } from '../app/theme.ts'
import { Brand } from '../components/marks.tsx'
import { Problem } from '../components/problem.tsx'
import { ZoneChoice } from '../components/time.tsx'
import type { ApiError } from '../api/api.ts'

const groups = ['Agents', 'Site', 'Record', 'Deliver'] as const

/** The type that a page counts: requests, or visits where no site has requests, on the page of agents. */
const countedType = ({ counted }: PageRoute): string | undefined =>
  counted === 'unit' ? totals.value?.unit.type : counted

/** The same count as the page's headline, with the same range and sites. */
function countOf(route: PageRoute): number {
  const byType = totals.value?.totals ?? {}
  const type = countedType(route)
  return type !== undefined && Object.hasOwn(byType, type) ? (byType[type] ?? 0) : 0
}

/** Seven digits do not fit beside a page's name. */
const digitsMax = 999_999

function Count({ events, type }: { events: number; type: string }) {
  const period = totals.value?.period
  if (events === 0 || period === undefined) return null
  const sites = period.siteIds.length === 0 ? 'all sites' : period.siteIds.map(visibleText).join(', ')
  const filtered = period.filters.length === 0 ? '' : ', filtered'
  const description = `${count(events)} ${measureOf(type)?.unit ?? 'events'} ${rangeWords(period)}, ${sites}${filtered}`
  return (
    <small aria-hidden="true" title={description}>
      {events > digitsMax ? compactCount(events) : count(events)}
    </small>
  )
}

function PageLink(props: { route: PageRoute; onFollow: () => void }) {
  const { route } = props
  const type = countedType(route)
  return (
    <a
      href={route.path}
      aria-current={routeOf(path.value) === route ? 'page' : undefined}
      onClick={props.onFollow}
    >
      {route.name}
      {type !== undefined && <Count events={countOf(route)} type={type} />}
    </a>
  )
}

/** The range of the counts below. */
function CountedRange() {
  const period = totals.value?.period
  if (period === undefined || !routes.some((route) => countOf(route) > 0)) return null
  return (
    <small aria-hidden="true" title={`Counts below: ${rangeWords(period)}`}>
      {period.filters.length === 0 ? lengthName(period) : `${lengthName(period)}, filtered`}
    </small>
  )
}

export function Navigation(props: { onFollow?: () => void }) {
  const onFollow = props.onFollow ?? (() => {})
  return (
    <>
      <a class="brand" href="/" aria-label="Sightglass home" onClick={onFollow}>
        <Brand />
        Sightglass
      </a>
      <div class="nav-start">
        {routes
          .filter(({ group }) => group === 'Start')
          .map((route) => (
            <PageLink route={route} onFollow={onFollow} />
          ))}
      </div>
      {groups.map((group) => (
        <div class="nav-group">
          <p>
            {group}
            {group === groups[0] && <CountedRange />}
          </p>
          {routes
            .filter((route) => route.group === group)
            .map((route) => (
              <PageLink route={route} onFollow={onFollow} />
            ))}
        </div>
      ))}
      <Foot onFollow={onFollow} />
    </>
  )
}

function Foot(props: { onFollow: () => void }) {
  const problem = useSignal<ApiError | null>(null)
  const currentSession = session.value
  const settings = routes.find((route) => route.group === 'Own')
  const out = (): void => {
    signOut().catch((error: unknown) => (problem.value = asApiError(error)))
  }
  return (
    <div class="nav-foot">
      {settings && <PageLink route={settings} onFollow={props.onFollow} />}
      <div class="nav-who">
        {currentSession && (
          <p>
            <a href="/settings/organization" onClick={props.onFollow}>
              <Text value={currentSession.org.slug} max={18} />
            </a>{' '}
            · {currentSession.role}
          </p>
        )}
        <button type="button" class="link-button" onClick={out}>
          Sign out
        </button>
      </div>
      {problem.value && <Problem error={problem.value} />}
      <ZoneChoice />
      <ThemeSwitch />
    </div>
  )
}

function ThemeSwitch() {
  return (
    <fieldset class="theme-switch">
      <legend class="visually-hidden">Theme</legend>
      {themes.map((name) => (
        <label>
          <input
            type="radio"
            name="theme"
            class="visually-hidden"
            checked={theme.value === name}
            onChange={() => (theme.value = name)}
          />
          <span>{name}</span>
        </label>
      ))}
    </fieldset>
  )
}
