/** The tools of the demo site: names from a real registry, with page, weight, duration and required trust. */
import registry from './tools.github.json'

export interface DemoTool {
  name: string
  page: string
  needs: 'nothing' | 'verified' | 'linked' // trust below this is denied
  medianMs: number
  errorRate: number
  weight: number
}

/** The page of a tool; the first pattern that matches its name decides. */
const pages: readonly (readonly [RegExp, string])[] = [
  [/pull_request|review|merge/, '/pulls'],
  [/issue|label|milestone/, '/issues'],
  [/scanning|secret|advisor|dependabot|quality/, '/security'],
  [/actions|job_logs/, '/actions'],
  [/discussion/, '/discussions'],
  [/gist/, '/gists'],
  [/notification/, '/notifications'],
  [/project/, '/projects'],
  [/user|team|org|get_me/, '/people'],
  [/search/, '/search'],
  [/./, '/repositories'],
]

const favourites: { readonly [name: string]: number } = {
  search_code: 60,
  get_file_contents: 90,
  issue_read: 55,
  list_issues: 40,
  pull_request_read: 45,
  search_repositories: 35,
  search_issues: 30,
  issue_write: 22,
  add_issue_comment: 20,
  create_pull_request: 14,
  get_commit: 18,
  list_commits: 16,
  create_or_update_file: 10,
  merge_pull_request: 6,
}

export const demoTools: readonly DemoTool[] = registry.tools.map(({ name, annotations }, rank) => {
  const reads = annotations.readOnlyHint
  const destroys = /^(?:delete|merge|push|fork|dismiss)/.test(name)
  const searches = name.startsWith('search_') || name.includes('logs')
  return {
    name,
    page: pages.find(([form]) => form.test(name))![1],
    needs: reads ? 'nothing' : destroys ? 'linked' : 'verified',
    medianMs: searches ? 420 : reads ? 95 : destroys ? 640 : 230,
    errorRate: searches ? 0.05 : reads ? 0.015 : 0.04,
    weight: popularity(name, rank, reads),
  }
})

/** A few tools get most calls. Reads are more frequent than writes. */
function popularity(name: string, rank: number, reads: boolean): number {
  return favourites[name] ?? (reads ? 6 : 2.5) / (1 + (rank % 9))
}
