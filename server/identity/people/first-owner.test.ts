/** The first owner: one of many concurrent requests, validated password and email, and one audit row. */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../../../db/contract/store.ts'
import { quickPasswords } from '../../../tests/support/quick-passwords.ts'
import { openDataFolder } from '../../runtime/open-data-folder.ts'
import { AppError } from '../../errors.ts'
import { sha256Hex } from '../../ids.ts'
import { readEmail } from './members.ts'
import { createFirstOwner } from './first-owner.ts'

const folder = mkdtempSync(join(tmpdir(), 'sightglass-owner-'))
const clock = { now: () => Date.UTC(2026, 5, 23, 12) }
const good = { email: 'Ann@Example.com', password: 'correct horse battery', linkHash: null, actor: 'system' }
let store: Store
let endQuickPasswords: () => void

beforeAll(async () => {
  endQuickPasswords = quickPasswords()
  store = await openDataFolder(join(folder, 'data'), clock)
})
afterAll(async () => {
  await store.close()
  endQuickPasswords()
  rmSync(folder, { recursive: true, force: true })
})

test('rejects invalid passwords, invalid email addresses and unknown links', async () => {
  const wrong = [
    { ...good, password: 'short' },
    { ...good, password: 'ann@example.com' },
    { ...good, email: 'ann' },
  ]
  for (const request of wrong) {
    const refusal: unknown = await createFirstOwner(store, request, clock).catch((error: unknown) => error)
    expect(refusal).toMatchObject({ code: 'invalid_body' })
  }
  const linked = { ...good, linkHash: sha256Hex('no such token') }
  expect(await createFirstOwner(store, linked, clock)).toEqual({ status: 'link_invalid' })
  expect(await store.accounts.list()).toEqual([])
})

test('of thirty concurrent requests exactly one creates the owner, with one audit row', async () => {
  using hash = spyOn(Bun.password, 'hash')
  const requests = Array.from({ length: 30 }, (_, index) =>
    createFirstOwner(store, { ...good, email: `a${index}@b.c` }, clock),
  )
  const results = await Promise.all(requests)
  expect(hash.mock.calls.length).toBeGreaterThan(1) // they did race
  const createdOwners = results.filter(({ status }) => status === 'created')
  expect(createdOwners).toHaveLength(1)
  expect(results.filter(({ status }) => status === 'owner_exists')).toHaveLength(29)
  const accounts = await store.accounts.list()
  expect(accounts).toHaveLength(1)
  expect(accounts[0]).toMatchObject({ operator: true, memberships: [{ role: 'owner' }] })
  const org = (await store.orgs.find('default'))!
  const { entries } = await store.audit.list({ orgId: org.id, limit: 100, beforeSeq: null })
  expect(entries).toMatchObject([{ action: 'account.created', actor: 'system', target: accounts[0]!.id }])
})

test('once an owner exists, requests are rejected before validation and hashing', async () => {
  using hash = spyOn(Bun.password, 'hash')
  for (const password of ['', good.password]) {
    expect(await createFirstOwner(store, { ...good, password }, clock)).toEqual({ status: 'owner_exists' })
  }
  expect(hash).toHaveBeenCalledTimes(0)
})

test('email addresses are trimmed and lower-cased; malformed ones are rejected', () => {
  expect(readEmail('  Ann.O+x@Mail.Example ')).toBe('ann.o+x@mail.example')
  expect(readEmail('jörg@exämple.de')).toBe('jörg@exämple.de')
  for (const wrong of [
    '',
    'a',
    '@b',
    'a@',
    'a@b@c',
    'a b@c',
    'a@b,c@d',
    'a@b\u0000',
    '<a@b>',
    `${'a'.repeat(253)}@b`,
  ]) {
    expect(() => readEmail(wrong)).toThrow(AppError)
  }
})
