/** The site map as a tree of paths, with each page's purpose and actions. */
import { Text } from '../../components/text.tsx'
import { counted } from '../../text/format.ts'
import type { MapNode, SiteMap } from './snapshot.ts'

const actionsMax = 8

export function SiteTree({ map }: { map: SiteMap }) {
  return (
    <section class="panel lead">
      <header class="lead-head">
        <h3>Site map</h3>
        <small class="muted">{counted(map.pages, 'page')}</small>
      </header>
      {map.pages === 0 ? (
        <p class="muted">The snapshot has no pages.</p>
      ) : (
        <div class="site-tree" tabIndex={0} role="region" aria-label="Site map">
          <ul aria-label="Pages of the site">
            {map.roots.map((node) => (
              <Branch key={node.key} node={node} />
            ))}
          </ul>
        </div>
      )}
      {map.odd > 0 && (
        <p class="muted">
          {counted(map.odd, 'entry', 'entries')} without a path {map.odd === 1 ? 'is' : 'are'} not shown.
        </p>
      )}
      {map.cut && <p class="muted">The first 1,000 pages are shown. The snapshot has all of them.</p>}
    </section>
  )
}

function Branch({ node }: { node: MapNode }) {
  const { page, children } = node
  return (
    <li>
      <div class="tree-page">
        <span class={page === null ? 'tree-path no-page' : 'tree-path'}>
          <Text value={node.part} max={60} mono />
        </span>
        {page !== null && page.name !== '' && (
          <b>
            <Text value={page.name} max={60} />
          </b>
        )}
        {page !== null && page.purpose !== '' && (
          <span class="muted">
            <Text value={page.purpose} max={160} />
          </span>
        )}
        {page !== null && page.actions.length > 0 && (
          <span class="tree-actions">
            {page.actions.slice(0, actionsMax).map((action, index) => (
              <span class="chip plain" key={index}>
                <Text value={action} max={28} />
              </span>
            ))}
            {page.actions.length > actionsMax && (
              <span class="muted">and {page.actions.length - actionsMax} more</span>
            )}
          </span>
        )}
      </div>
      {children.length > 0 && (
        <ul>
          {children.map((child) => (
            <Branch key={child.key} node={child} />
          ))}
        </ul>
      )}
    </li>
  )
}
