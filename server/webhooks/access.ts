/** How a request to the webhook routes is let past: by secret key on the public API, by sign-in on the dashboard's. */
import type { Who } from './who.ts'

export interface Access {
  read(request: Request): Promise<Who>
  write(request: Request): Promise<Who>
}
