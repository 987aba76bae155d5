/** Authorizes webhook requests: by secret key on the public API, by sign-in on the dashboard. */
import type { Actor } from '../audit/entry.ts'

export interface Access {
  read(request: Request): Promise<Actor>
  write(request: Request): Promise<Actor>
}
