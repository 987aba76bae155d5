/** The list of all pages by group, with decorative counts, and whose dashboard this is. */
import './navigation.css'
import { useSignal } from '@preact/signals'
import { asApiError, overview, session, signOut } from '../session.ts'
import { compactCount, count } from '../format.ts'
import { path } from '../router.ts'
import { type PageRoute, routeOf, routes } from '../routes.ts'
import { theme, themes } from '../theme.ts'
import { Brand } from './marks.tsx'
import { Problem } from './problem.tsx'
import { Text } from './text.tsx'
import type { ApiError } from '../api.ts'

const groups = ['Agents', 'Site', 'Record', 'Deliver'] as const

/** What the page's headline counts, but of all time: the overview knows no range. */
function countOf({ counted: type }: PageRoute): number {
  const byType = overview.value?.byType ?? {}
  return type !== undefined && Object.hasOwn(byType, type) ? (byType[type] ?? 0) : 0
}

function PageLink(props: { route: PageRoute; onFollow: () => void }) {
  const { route } = props
  const events = countOf(route)
  return (
    <a
      href={route.path}
      aria-current={routeOf(path.value) === route ? 'page' : undefined}
      onClick={props.onFollow}
    >
      {route.name}
      {events > 0 && (
        <small aria-hidden="true" title={`${count(events)} ${route.counted} of all time, all sites`}>
          {compactCount(events)}
        </small>
      )}
    </a>
  )
}

export function Navigation(props: { onFollow?: () => void }) {
  const onFollow = props.onFollow ?? (() => {})
  return (
    <>
      <a class="brand" href="/" aria-label="Sightglass, front page" onClick={onFollow}>
        <Brand />
        Sightglass
      </a>
      {groups.map((group) => (
        <div class="nav-group">
          <p>{group}</p>
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
  const who = session.value
  const settings = routes.find((route) => route.group === 'Own')
  const out = (): void => {
    signOut().catch((error: unknown) => (problem.value = asApiError(error)))
  }
  return (
    <div class="nav-foot">
      {settings && <PageLink route={settings} onFollow={props.onFollow} />}
      <div class="nav-who">
        {who && (
          <p>
            <a href="/settings/organization" onClick={props.onFollow}>
              <Text value={who.org.slug} max={18} />
            </a>{' '}
            · {who.role}
          </p>
        )}
        <button type="button" class="link-button" onClick={out}>
          Sign out
        </button>
      </div>
      {problem.value && <Problem error={problem.value} />}
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
