/**
 * A page that is not built yet says so: what it will show, what is kept for it already, and where to see that today.
 */
import './page.css'
import { FirstEvent } from '../../components/first-event.tsx'
import { PageBar } from '../../components/page-bar.tsx'
import { Text } from '../../components/text.tsx'
import { type SampleKind, sampleType } from '../../curl.ts'
import { count, counted } from '../../format.ts'
import { path } from '../../router.ts'
import { overview } from '../../session.ts'
import { keptTypes, plannedPages, type PlannedPage } from './model.ts'

const shownTypesMax = 20

export default function PlannedPage() {
  const page = plannedPages.find(
    (planned) => path.value === planned.path || path.value.startsWith(`${planned.path}/`),
  )
  if (!page) return null
  const seen = overview.value
  const kept = keptTypes(seen?.byType ?? {}, page.prefix)
  return (
    <>
      <PageBar title={page.name} />
      <div class="page">
        {seen !== null && kept.length === 0 && (
          <FirstEvent
            title={page.missing}
            lead={<Lead name={page.name} kind={page.sample} />}
            kind={page.sample}
            watch
          >
            <NotBuilt page={page} name={page.name} />
          </FirstEvent>
        )}
        {kept.length > 0 && <Kept page={page} name={page.name} kept={kept} />}
      </div>
    </>
  )
}

function Lead({ name, kind }: { name: string; kind: SampleKind }) {
  return (
    <>
      {name} fills from <code>{sampleType(kind)}</code> events.
    </>
  )
}

function NotBuilt({ page, name }: { page: PlannedPage; name: string }) {
  return (
    <p>
      {name} is not built yet. It will show {page.shows}. What you send now is kept for it.
    </p>
  )
}

function Kept({
  page,
  name,
  kept,
}: {
  page: PlannedPage
  name: string
  kept: { type: string; count: number }[]
}) {
  const total = kept.reduce((sum, type) => sum + type.count, 0)
  const search = page.prefix === null ? '' : `?type=${page.prefix}.*`
  return (
    <section class="panel planned">
      <header>
        <h2>This page is not built yet</h2>
        <p>
          {name} will show {page.shows}. {counted(total, 'event')} of its kind {total === 1 ? 'is' : 'are'}{' '}
          kept already and will be counted in.
        </p>
        <a class="button" href={`/logs${search}`}>
          See them as they came
        </a>
      </header>
      <table>
        <thead>
          <tr>
            <th scope="col">Type</th>
            <th scope="col" class="number">
              Kept events
            </th>
          </tr>
        </thead>
        <tbody>
          {kept.slice(0, shownTypesMax).map((type) => (
            <tr key={type.type}>
              <td>
                <a href={`/logs?type=${encodeURIComponent(type.type)}`}>
                  <Text value={type.type} max={64} />
                </a>
              </td>
              <td class="number">{count(type.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {kept.length > shownTypesMax && (
        <p class="muted">And {counted(kept.length - shownTypesMax, 'type')} more.</p>
      )}
    </section>
  )
}
