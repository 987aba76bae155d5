/** Helpers of the browser tests: signing in, sending events, running a shown command. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright'
import { type Appliance, type ApplianceOptions, startAppliance } from '../support/binary.ts'
import { atEnd, type PageOptions, postAs, sessionCookie, useSession, withPage } from '../support/browser.ts'
import { isOnPostgres } from '../support/engine.ts'
import { madeOnce } from '../support/made-once.ts'

export const owner = { email: 'ada@example.com', password: 'correct horse battery' }

/** Environment with which a server makes that owner by itself. */
export const ownerEnv = { SIGHTGLASS_ADMIN_EMAIL: owner.email, SIGHTGLASS_ADMIN_PASSWORD: owner.password }

/**
 * Starts an appliance whose owner has signed in. Its data is a copy of what the executable made once, because two
 * hashes of a password cost more processor time than the start of the server.
 */
export async function startWithOwner(options: Omit<ApplianceOptions, 'dataDir'> = {}): Promise<Appliance> {
  if (isOnPostgres) return startAppliance({ ...options, env: { ...ownerEnv, ...options.env } })
  const ownerFolder = await madeOnce('with-owner', makeOwner)
  const appliance = await startAppliance({ ...options, copyOf: join(ownerFolder, 'data') })
  useSession(appliance.url, owner.email, readFileSync(join(ownerFolder, 'cookie'), 'utf8'))
  return appliance
}

async function makeOwner(folder: string): Promise<void> {
  await using appliance = await startAppliance({ dataDir: join(folder, 'data'), env: ownerEnv })
  const { name, value } = await sessionCookie(appliance.url, owner)
  writeFileSync(join(folder, 'cookie'), `${name}=${value}`)
}

/** An organization that a test file has for itself. */
export interface Organization {
  /** Of the appliance. */
  url: string
  slug: string
  /** Its ingest key. */
  key: string
  makeKey(kind: 'ingest' | 'secret', label: string): Promise<string>
  appliance: Appliance
}

let shared: Promise<Appliance> | null = null
let organizations = 0

/**
 * Creates an organization, which the owner sees from now on. The files of a process share its appliance: starting one
 * and compiling its dashboard costs as much processor time as four visits. Call `closeBrowser` in `afterAll`.
 */
export async function newOrganization(): Promise<Organization> {
  shared ??= startWithOwner({ args: ['--webhook-allow', '127.0.0.0/8'] })
  const appliance = await shared
  if (organizations === 0) atEnd(appliance.stop)
  const { url } = appliance
  const slug = `organization-${++organizations}`
  const post = <T>(path: string, body: object) => postAs<T>(url, owner, path, body)
  const { org } = await post<{ org: { id: string } }>('/api/orgs', { name: slug, slug })
  await post('/api/session/org', { orgId: org.id })
  const makeKey: Organization['makeKey'] = async (kind, label) =>
    (await post<{ secret: string }>('/api/keys', { kind, label })).secret
  return { url, slug, key: await makeKey('ingest', 'test'), makeKey, appliance }
}

/** Opens `url` as the signed-in owner, in the document of the owner's last visit unless `continues` is false. */
export function withOwner<T>(
  url: string,
  visit: (page: Page) => Promise<T>,
  options: PageOptions = {},
): Promise<T> {
  const shown = async (page: Page): Promise<T> => {
    await page.locator('.shell').waitFor()
    return visit(page)
  }
  return withPage(url, shown, { continues: true, ...options, as: owner })
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
  const keyExit = await appliance.cli(
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
  if (keyExit.code !== 0) throw new Error(keyExit.stderr)
  return (JSON.parse(keyExit.stdout) as { key: string }).key
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
  return page.locator('.event-row').evaluateAll((elements) => elements.map((row) => row.textContent ?? ''))
}
