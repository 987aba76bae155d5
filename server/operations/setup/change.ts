/** What became of one item of a set-up file, and for whom it is applied. */

/** `left`: the file asks for something that people ended since, such as a key they revoked; `note` says what. */
export interface Applied {
  did: 'created' | 'changed' | 'unchanged' | 'left'
  note: string | null
}

export interface SetupChange extends Applied {
  kind: 'organization' | 'site' | 'key' | 'endpoint'
  org: string // slug
  name: string
}

/** How one item is applied: who acts, in an organization that may not be there yet while nothing is done. */
export interface Acting {
  orgId: string | null // null: it would be created
  actor: string
  dryRun: boolean
}

export const unchanged: Applied = { did: 'unchanged', note: null }
