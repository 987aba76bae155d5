/** Helpers of the browser tests: signing in, sending events, running a shown command. */
import type { Page } from 'playwright'
import type { Appliance } from '../support/binary.ts'
import { type PageOptions, withPage } from '../support/browser.ts'

export const owner = { email: 'ada@example.com', password: 'correct horse battery' }

/** Environment with which a server makes that owner by itself. */
export const ownerEnv = { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password }

/** Opens `url` as the signed-in owner. */
export function withOwner<T>(
  url: string,
  visit: (page: Page) => Promise<T>,
  options: PageOptions = {},
): Promise<T> {
  const shown = async (page: Page): Promise<T> => {
    await page.locator('.shell').waitFor()
    return visit(page)
  }
  return withPage(url, shown, { ...options, as: owner })
}

/** Signs in through the form, for tests about signing in. */
export async function signIn(page: Page): Promise<void> {
  await signInAs(page, owner.email, owner.password)
  await page.locator('.shell').waitFor()
}

/** The caller waits for the result: the dashboard, a second factor or an error. */
export async function signInAs(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('Email').fill(email)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** A new ingest key from the command line. */
export async function ingestKey(appliance: Appliance): Promise<string> {
  const made = await appliance.cli(
    'key',
    'create',
    '--kind',
    'ingest',
    '--org',
    'default',
    '--label',
    'test',
    '--json',
  )
  if (made.code !== 0) throw new Error(made.stderr)
  return (JSON.parse(made.stdout) as { key: string }).key
}

/** Posts events; throws unless every one was accepted or deduplicated. */
export async function send(url: string, key: string, events: unknown[]): Promise<void> {
  const answer = await fetch(`${url}/v1/sdk/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ events }),
  })
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`)
}

/**
 * Runs a command that the dashboard shows, like a reader who pastes it: the shell splits it into arguments, and the
 * arguments of curl are then sent.
 */
export async function runCurl(command: string): Promise<Response> {
  const shell = Bun.spawn(['sh', '-c', `curl() { printf '%s\\0' "$@"; }\n${command}`], { stdout: 'pipe' })
  const words = (await new Response(shell.stdout).text()).split('\0')
  const headers: [string, string][] = []
  let url = ''
  let body: string | null = null
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '-H') headers.push((words[++i] ?? '').split(': ', 2) as [string, string])
    else if (word === '-d') body = words[++i] ?? ''
    else if (url === '') url = word
  }
  return fetch(url, body === null ? { headers } : { method: 'POST', headers, body })
}

/** The rows of the Logs table as texts, top first, without the delay beside the time. */
export async function rows(page: Page): Promise<string[]> {
  return page.locator('.event-row').evaluateAll((all) => all.map((row) => row.textContent ?? ''))
}
