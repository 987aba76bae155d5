/** Settings, People: members, their roles and pending invitations. */
import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Role } from '../../../api/api.ts'
import { Choice, Field, FormDialog, SecretDialog, textOf } from '../../../components/dialog.tsx'
import { Problem, useTask } from '../../../components/problem.tsx'
import { Text } from '../../../components/text.tsx'
import { identityApi, type Invitation, type Member } from '../../../api/identity-api.ts'
import { mayManage, session } from '../../../app/session.ts'
import { Minute, Moment } from '../../../components/time.tsx'
import { RecordTable, RowButton } from '../../../components/record-table.tsx'
import { RoleNote } from '../../../components/role-note.tsx'
import { useRecords } from '../../../query/use-query.ts'
import { counted } from '../../../text/format.ts'

const roles: readonly Role[] = ['owner', 'admin', 'analyst', 'viewer']
const roleTexts: { [role in Role]: string } = {
  owner: 'owner: full access, including other owners',
  admin: 'admin: manages people, keys, sites and webhooks',
  analyst: 'analyst: reads and exports data and the audit log',
  viewer: 'viewer: reads the dashboard',
}

/** Only owners can grant the owner role. */
function grantable(): { value: Role; text: string }[] {
  const ownRole = session.value?.role
  return roles
    .filter((role) => role !== 'owner' || ownRole === 'owner')
    .map((role) => ({ value: role, text: roleTexts[role] }))
}

export function People() {
  const inviting = useSignal(false)
  const link = useSignal<{ email: string; link: string } | null>(null)
  const changing = useSignal<Member | null>(null)
  const removing = useSignal<Member | null>(null)
  const allowed = mayManage(session.value)
  const {
    data: people,
    error: problem,
    refetch: reload,
  } = useRecords(allowed ? { key: 'people', fetch: identityApi.people } : null)
  if (!allowed) return <RoleNote text="Only owners and admins can manage people." />
  return (
    <section class="settings-section">
      <p class="about">An invitation link works once. Send it over a channel you trust.</p>
      <button
        type="button"
        class="button primary"
        aria-haspopup="dialog"
        onClick={() => (inviting.value = true)}
      >
        Invite member
      </button>
      {problem.value && <Problem error={problem.value} onRetry={reload} />}
      {people.value && (
        <MemberTable
          members={people.value.members}
          onChange={(member) => (changing.value = member)}
          onRemove={(member) => (removing.value = member)}
        />
      )}
      {people.value && <InvitationTable invitations={people.value.invitations} onDone={reload} />}
      {inviting.value && (
        <InviteDialog
          onCreated={(created) => {
            link.value = created
            reload()
          }}
          onClose={() => (inviting.value = false)}
        />
      )}
      {link.value && <LinkDialog {...link.value} onClose={() => (link.value = null)} />}
      {changing.value && (
        <RoleDialog member={changing.value} onDone={reload} onClose={() => (changing.value = null)} />
      )}
      {removing.value && (
        <RemoveDialog member={removing.value} onDone={reload} onClose={() => (removing.value = null)} />
      )}
    </section>
  )
}

interface MemberTableProps {
  members: Member[]
  onChange: (member: Member) => void
  onRemove: (member: Member) => void
}

function MemberTable({ members, onChange, onRemove }: MemberTableProps) {
  return (
    <RecordTable
      label="Members"
      rows={members}
      keyOf={({ id }) => id}
      columns={[
        { name: 'Email', cell: ({ email }) => <Text value={email} max={40} /> },
        {
          name: 'Role',
          cell: ({ role, operator }) => (
            <>
              {role}
              {operator && <span class="muted">, operator</span>}
            </>
          ),
        },
        {
          name: 'Second factor',
          cell: ({ secondFactor }) => (secondFactor ? 'on' : <span class="muted">off</span>),
        },
        {
          name: 'Last seen',
          cell: ({ lastSeenAt }) =>
            lastSeenAt === null ? <span class="muted">never</span> : <Moment iso={lastSeenAt} />,
        },
      ]}
      actions={(member) => (
        <>
          <RowButton label="Change role" of={`of ${member.email}`} onClick={() => onChange(member)} />
          <RowButton label="Remove" of={member.email} onClick={() => onRemove(member)} />
        </>
      )}
    />
  )
}

function InvitationTable({ invitations, onDone }: { invitations: Invitation[]; onDone: () => void }) {
  const { problem, run } = useTask()
  if (invitations.length === 0) return null
  return (
    <>
      <h3>Pending invitations</h3>
      {problem.value && <Problem error={problem.value} />}
      <RecordTable
        label="Pending invitations"
        rows={invitations}
        keyOf={({ id }) => id}
        columns={[
          { name: 'Email', cell: ({ email }) => <Text value={email} max={40} /> },
          { name: 'Role', cell: ({ role }) => role },
          { name: 'Expires', cell: ({ expiresAt }) => <Minute iso={expiresAt} /> },
        ]}
        actions={({ id, email }) => (
          <RowButton
            label="Revoke"
            of={`the invitation for ${email}`}
            onClick={() => void run(() => identityApi.revokeInvitation(id)).then(onDone)}
          />
        )}
      />
    </>
  )
}

interface InviteDialogProps {
  onCreated: (created: { email: string; link: string }) => void
  onClose: () => void
}

function InviteDialog({ onCreated, onClose }: InviteDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const role = roles.find((knownRole) => knownRole === form.get('role')) ?? 'viewer'
    const { invitation, link } = await identityApi.invite({ email: textOf(form, 'email'), role })
    onCreated({ email: invitation.email, link })
  }
  return (
    <FormDialog title="Invite member" action="Create link" onSubmit={submit} onClose={onClose}>
      <Field name="email" label="Email" type="email" required autofocus />
      <Choice name="role" label="Role" options={grantable()} value="viewer" />
    </FormDialog>
  )
}

function LinkDialog({ email, link, onClose }: { email: string; link: string; onClose: () => void }) {
  return (
    <SecretDialog
      title="Invitation created"
      about={
        <>
          Send this link to <Text value={email} />. It works once, expires in 7 days, and is not shown again.
        </>
      }
      label="Invitation link"
      secret={link}
      copyLabel="Copy link"
      onClose={onClose}
    />
  )
}

interface MemberDialogProps {
  member: Member
  onDone: () => void
  onClose: () => void
}

const endingLinks = ({ shareLinks }: Member): string =>
  `Their ${counted(shareLinks, 'open share link')} ${shareLinks === 1 ? 'ends' : 'end'}`

function RoleDialog({ member, onDone, onClose }: MemberDialogProps) {
  const submit = async (form: FormData): Promise<void> => {
    const role = roles.find((knownRole) => knownRole === form.get('role')) ?? member.role
    await identityApi.changeRole(member.id, role)
    onDone()
  }
  return (
    <FormDialog title="Change role" action="Change role" onSubmit={submit} onClose={onClose}>
      <p>
        <Text value={member.email} /> is signed out and has the new role at the next sign-in.
        {member.shareLinks > 0 && ` ${endingLinks(member)} with the role analyst or viewer.`}
      </p>
      <Choice name="role" label="Role" options={grantable()} value={member.role} />
    </FormDialog>
  )
}

function RemoveDialog({ member, onDone, onClose }: MemberDialogProps) {
  const submit = async (): Promise<void> => {
    await identityApi.removeMember(member.id)
    onDone()
  }
  return (
    <FormDialog title="Remove member" action="Remove member" danger onSubmit={submit} onClose={onClose}>
      <p>
        <strong>
          <Text value={member.email} />
        </strong>{' '}
        is signed out and loses access to this organization. Their audit log entries remain.
        {member.shareLinks > 0 && ` ${endingLinks(member)}.`}
      </p>
    </FormDialog>
  )
}
