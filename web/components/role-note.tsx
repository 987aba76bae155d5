/** The note of a section that only some roles may see or change. */
import { session } from '../app/session.ts'

/** Says which roles may see or change a section, to members of other roles. */
export function RoleNote({ text }: { text: string }) {
  return (
    <p class="muted">
      {text} Your role is {session.value?.role}.
    </p>
  )
}
