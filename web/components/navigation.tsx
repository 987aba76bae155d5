/** The list of all pages by group, with decorative counts, and whose dashboard this is. */
import './navigation.css'
import { useSignal } from '@preact/signals'
import { asApiError, overview, session, signOut } from '../session.ts'
import { compactCount } from '../format.ts'
import { path } from '../router.ts'
import { type PageRoute, routeOf, routes } from '../routes.ts'
import { theme, themes } from '../theme.ts'
import { Brand } from './marks.tsx'
import { Problem } from './problem.tsx'
import { Text } from './text.tsx'
import type { ApiError } from '../api.ts'

const groups = ['Agents', 'Site', 'Record', 'Deliver'] as const

/** How many events of the page's kind are kept, from the overview. */
function countOf(route: PageRoute): number {
  const seen = overview.value
  if (!seen || route.prefix === null) return 0
  const prefix = `${route.prefix}.`
  return Object.entries(seen.byType)
    .filter(([type]) => type === route.prefix || type.startsWith(prefix))
    .reduce((sum, [, count]) => sum + count, 0)
}

function PageLink(props: { route: PageRoute; onFollow: () => void }) {
  const { route } = props
  const count = countOf(route)
  return (
    <a
      href={route.path}
      aria-current={routeOf(path.value) === route ? 'page' : undefined}
      onClick={props.onFollow}
    >
      {route.name}
      {count > 0 && <small aria-hidden="true">{compactCount(count)}</small>}
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
