/** Email addresses of accounts: the same letters are the same address, however a keyboard composes them. */
import type { Account, Store } from '../../../db/contract/store.ts'

/** Trimmed, composed (NFC) and in lower case. */
export function canonicalEmail(text: string): string {
  return text.trim().normalize('NFC').toLowerCase().normalize('NFC')
}

/** Earlier releases stored an address as it was typed, so the other forms are looked up too. */
export async function findAccountByEmail(
  { accounts }: { accounts: Pick<Store['accounts'], 'findByEmail'> },
  text: string,
): Promise<Account | null> {
  const email = canonicalEmail(text)
  for (const form of new Set([email, text.trim().toLowerCase(), email.normalize('NFD')])) {
    const account = await accounts.findByEmail(form)
    if (account !== null) return account
  }
  return null
}
