/** How a request to the webhook routes is let past: by secret key on the public API, by sign-in on the dashboard's. */
import type { Actor } from '../audit/entry.ts'

export interface Access {
  read(request: Request): Promise<Actor>
  write(request: Request): Promise<Actor>
}
