/** Says which roles may see or change a section, to members of other roles. */
import { session } from '../../app/session.ts'

export function RoleNote({ text }: { text: string }) {
  return (
    <p class="muted">
      {text} Your role is {session.value?.role}.
    </p>
  )
}
