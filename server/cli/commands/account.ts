/** `sightglass account`: creates and lists accounts, makes one-time links, and changes roles. */
import type { Account, Json, OneTimeLink, Role } from '../../../db/contract/store.ts'
import { decodeText } from '../../../db/rules/decode-text.ts'
import { auditEntry } from '../../audit/entry.ts'
import { isoTime } from '../../clock.ts'
import { AppError, UsageError } from '../../errors.ts'
import { applianceOrgId } from '../../../db/contract/audit.ts'
import { findAccountByEmail } from '../../identity/sign-in/email.ts'
import { changeRole, invite, readEmail, readRole, removeMember } from '../../identity/people/members.ts'
import { checkPasswordRules, hashPassword } from '../../identity/sign-in/password.ts'
import { newId, newToken, sha256Hex } from '../../ids.ts'
import { limits } from '../../limits.ts'
import { flagOf, textOf, textOrNull, type Params, type Work, type WorkContext } from '../../runtime/work.ts'
import { hasUnreadableBytes, trimSecret } from '../../text/secret-text.ts'
import type { Noun } from '../command.ts'
import { dataCommand, machineIn, requireAccount, requireOrg } from '../data-command.ts'
import { choice, text, toggle } from '../option.ts'
import { linkOptions, orgOption } from '../options.ts'
import { cell, minute, rows, table } from '../print.ts'

const email = { email: { ...text('EMAIL', 'email address of the account'), needed: true } } as const
const role = {
  role: {
    ...choice(['owner', 'admin', 'analyst', 'viewer'], 'role in the organization'),
    needed: true,
  },
} as const

export const account: Noun = {
  group: 'People',
  commands: [
    dataCommand({
      name: 'account create',
      summary: 'create an account with a role in an organization',
      about: [
        'Prints a one-time link to set the password, valid for 30 minutes; with --password-stdin the password is set at once. The first owner also becomes the operator of the appliance.',
      ],
      examples: [
        'sightglass account create --email ann@example.com --role analyst',
        'sightglass account create --email ann@example.com --role owner --password-stdin < password.txt',
      ],
      options: {
        ...email,
        ...role,
        ...orgOption,
        operator: toggle('make the account an operator of the appliance; the first owner always is one'),
        'password-stdin': toggle('read the password from standard input'),
        ...linkOptions,
      },
      access: 'create',
      async params({ values }) {
        const password = values['password-stdin'] ? await passwordFromStdin() : null
        return {
          email: values.email,
          role: values.role,
          org: values.org,
          operator: values.operator,
          password,
        }
      },
      work: create,
      print({ email: address, role: roleName, operator, link }) {
        const created = `Created the account ${cell(address)} (${cell(roleName)}${operator === true ? ', operator' : ''}).`
        return link === null ? created : `${created}\n${linkText(link)}`
      },
    }),
    dataCommand({
      name: 'account list',
      summary: 'list the accounts and their roles',
      examples: ['sightglass account list --json'],
      options: {},
      access: 'read',
      params: () => ({}),
      work: list,
      print: ({ accounts }) =>
        table(
          accounts,
          'No accounts. Create one with "sightglass account create".',
          ['EMAIL', 'ROLES', 'OPERATOR', 'ID', 'CREATED'],
          (accountRow) => [
            cell(accountRow['email']),
            rows(accountRow['memberships'])
              .map(({ orgSlug, role: memberRole }) => `${cell(orgSlug)}:${cell(memberRole)}`)
              .join(' '),
            accountRow['operator'] === true ? 'yes' : 'no',
            cell(accountRow['id']),
            minute(accountRow['createdAt']),
          ],
        ),
    }),
    dataCommand({
      name: 'account reset-password',
      summary: 'print a one-time link to set a new password, valid for 30 minutes',
      about: ['The old password works until the link is used. Using it ends all sessions of the account.'],
      examples: ['sightglass account reset-password --email ann@example.com'],
      options: { ...email, ...linkOptions },
      access: 'write',
      params: ({ values }) => ({ email: values.email }),
      work: resetPassword,
      print: ({ link }) => linkText(link),
    }),
    dataCommand({
      name: 'account invite',
      summary: 'print a one-time link that makes its recipient a member, valid for 7 days',
      about: [
        'A new invitation replaces an older one of the same address. Recipients with an account sign in with their password.',
      ],
      examples: ['sightglass account invite --email ann@example.com --role analyst'],
      options: { ...email, ...role, ...orgOption, ...linkOptions },
      access: 'create',
      params: ({ values }) => ({ email: values.email, role: values.role, org: values.org }),
      async work(context, params) {
        const actor = await machineIn(context.store, params)
        const request = { email: textOf(params, 'email'), role: readRole(textOf(params, 'role')) }
        const { invitation, token } = await invite(context, actor, request)
        const { id, orgId, expiresAtMs } = invitation
        const link = `${context.baseUrl}/invitation#${token}`
        return {
          id,
          email: invitation.email,
          role: invitation.role,
          orgId,
          link,
          expiresAt: isoTime(expiresAtMs),
        }
      },
      print: ({ email: address, role: roleName, link }) =>
        `Send this link to ${cell(address)} (${cell(roleName)}). It works once, within 7 days:\n${cell(link)}`,
    }),
    dataCommand({
      name: 'account set-role',
      summary: 'change the role of a member and end their sessions in the organization',
      about: ['An organization keeps at least one owner.'],
      examples: ['sightglass account set-role --email ann@example.com --role owner'],
      options: { ...email, ...role, ...orgOption },
      access: 'write',
      params: ({ values }) => ({ email: values.email, role: values.role, org: values.org }),
      async work(context, params) {
        const actor = await machineIn(context.store, params)
        const member = await requireAccount(context.store, params)
        const newRole = readRole(textOf(params, 'role'))
        await changeRole(context, actor, member.id, newRole)
        return { accountId: member.id, email: member.email, role: newRole, orgId: actor.orgId }
      },
      print: ({ email: address, role: roleName }) => `Role of ${cell(address)}: ${cell(roleName)}.`,
    }),
    dataCommand({
      name: 'account remove',
      summary: 'remove a member from an organization; the account stays',
      examples: ['sightglass account remove --email ann@example.com'],
      options: { ...email, ...orgOption },
      access: 'write',
      params: ({ values }) => ({ email: values.email, org: values.org }),
      async work(context, params) {
        const actor = await machineIn(context.store, params)
        const member = await requireAccount(context.store, params)
        await removeMember(context, actor, member.id)
        return { accountId: member.id, email: member.email, orgId: actor.orgId }
      },
      print: ({ email: address }) => `${cell(address)} is no longer a member.`,
    }),
    dataCommand({
      name: 'account make-operator',
      summary: 'make an account an operator of the appliance',
      about: ['Operators create organizations and backups, and see the health of the appliance.'],
      examples: ['sightglass account make-operator --email ann@example.com'],
      options: email,
      access: 'write',
      params: ({ values }) => ({ email: values.email }),
      work: setOperator(true),
      print: ({ email: address }) => `${cell(address)} is an operator.`,
    }),
    dataCommand({
      name: 'account drop-operator',
      summary: 'withdraw the operator right of an account; one operator remains',
      examples: ['sightglass account drop-operator --email ann@example.com'],
      options: email,
      access: 'write',
      params: ({ values }) => ({ email: values.email }),
      work: setOperator(false),
      print: ({ email: address }) => `${cell(address)} is no longer an operator.`,
    }),
    dataCommand({
      name: 'account reset-second-factor',
      summary: 'remove the second factor of somebody who lost the app and the recovery codes',
      about: ['The password alone signs in until a new second factor is set up.'],
      examples: ['sightglass account reset-second-factor --email ann@example.com'],
      options: email,
      access: 'write',
      params: ({ values }) => ({ email: values.email }),
      work: resetSecondFactor,
      print: ({ email: address }) => `Removed the second factor of ${cell(address)}.`,
    }),
  ],
}

async function passwordFromStdin(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('--password-stdin reads a pipe or a file, not a terminal')
  const password = trimSecret(decodeText(await Bun.stdin.bytes()))
  if (hasUnreadableBytes(password)) throw new UsageError('the password on standard input is not UTF-8')
  if (/[\r\n]/.test(password)) throw new UsageError('the password on standard input must be one line')
  return password
}

/** Without a password the account gets an unknown one, and a link to set the real one. */
async function create(context: WorkContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const address = readEmail(textOf(params, 'email'))
  const accountRole = textOf(params, 'role') as Role
  const password = textOrNull(params, 'password')
  const org = await requireOrg(store, textOf(params, 'org'))
  if (password !== null) checkPasswordRules(password, address)
  if (await findAccountByEmail(store, address))
    throw new AppError('conflict', `An account with the email ${address} already exists.`)
  // The first owner is operator too: somebody has to be.
  const operator =
    flagOf(params, 'operator') || (accountRole === 'owner' && !(await store.accounts.ownerExists()))
  const passwordHash = await hashPassword(password ?? newToken())
  const now = clock.now()
  const newAccount: Account = { id: newId('usr'), email: address, passwordHash, operator, createdAtMs: now }
  const link = password === null ? passwordLink(context, newAccount.id) : null
  const metadata = { email: address, role: accountRole, operator, passwordSet: password !== null }
  const act = { action: 'account.created', target: newAccount.id, metadata }
  await store.accounts.create({
    account: newAccount,
    orgId: org.id,
    role: accountRole,
    ...(link === null ? {} : { link: link.link }),
    audit: auditEntry({ orgId: org.id, actor: 'cli' }, act, now),
  })
  const shown = link?.shown ?? { link: null, linkExpiresAt: null }
  return {
    id: newAccount.id,
    email: address,
    role: accountRole,
    orgId: org.id,
    operator,
    createdAt: isoTime(now),
    ...shown,
  }
}

async function list({ store }: WorkContext): Promise<Json> {
  const slugs = new Map((await store.orgs.list()).map((org) => [org.id, org.slug]))
  const accounts = (await store.accounts.list()).map((storedAccount) => ({
    id: storedAccount.id,
    email: storedAccount.email,
    operator: storedAccount.operator,
    createdAt: isoTime(storedAccount.createdAtMs),
    memberships: storedAccount.memberships.map(({ orgId, role: memberRole }) => ({
      orgId,
      orgSlug: slugs.get(orgId) ?? null,
      role: memberRole,
    })),
  }))
  return { accounts }
}

async function resetPassword(context: WorkContext, params: Params): Promise<Json> {
  const { store, clock } = context
  const { id, email: address } = await requireAccount(store, params)
  const { link, shown } = passwordLink(context, id)
  const orgId = (await store.accounts.find(id))?.memberships[0]?.orgId ?? applianceOrgId
  const metadata = { email: address, expiresAt: shown.linkExpiresAt }
  const act = { action: 'account.reset_link_created', target: id, metadata }
  await store.accounts.createLink({ link, audit: auditEntry({ orgId, actor: 'cli' }, act, clock.now()) })
  return { accountId: id, email: address, ...shown }
}

function passwordLink({ clock, baseUrl }: WorkContext, accountId: string) {
  const token = newToken()
  const expiresAtMs = clock.now() + limits.setupLinkMs
  const link: OneTimeLink = { hash: sha256Hex(token), purpose: 'password', accountId, expiresAtMs }
  // Behind the # the token stays out of request lines and logs.
  return { link, shown: { link: `${baseUrl}/reset#${token}`, linkExpiresAt: isoTime(expiresAtMs) } }
}

function linkText(link: Json | undefined): string {
  return `Open this link to set the password. It works once, within 30 minutes:\n${cell(link)}`
}

function setOperator(operator: boolean): Work {
  return async ({ store, clock }, params) => {
    const { id, email: address, operator: wasOperator } = await requireAccount(store, params)
    if (wasOperator === operator) return { accountId: id, email: address, operator }
    const metadata = { email: address, before: { operator: wasOperator }, after: { operator } }
    const act = { action: 'account.operator_changed', target: id, metadata }
    const audit = auditEntry({ orgId: applianceOrgId, actor: 'cli' }, act, clock.now())
    if ((await store.accounts.setOperator({ accountId: id, operator, audit })) === 'last_operator')
      throw new AppError('conflict', 'The appliance keeps at least one operator.', {
        hint: 'sightglass account make-operator',
      })
    return { accountId: id, email: address, operator }
  }
}

async function resetSecondFactor({ store, clock }: WorkContext, params: Params): Promise<Json> {
  const { id, email: address } = await requireAccount(store, params)
  if ((await store.secondFactors.find(id)) === null)
    throw new AppError('conflict', `${address} has no second factor.`)
  const orgId = (await store.accounts.find(id))?.memberships[0]?.orgId ?? applianceOrgId
  const act = { action: 'account.second_factor_removed', target: id, metadata: { email: address } }
  const audit = auditEntry({ orgId, actor: 'cli' }, act, clock.now())
  await store.secondFactors.remove({ accountId: id, audit })
  return { accountId: id, email: address }
}
