/** Password rules, argon2id hashes, and a limit on concurrent hashing so that ingest keeps the CPU. */
import list from './common-passwords.txt' with { type: 'text' }
import { AppError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { canonicalPassword, passwordForms } from '../../text/secret-text.ts'

// The second OWASP recommendation, 46 MiB and two passes: about 100 ms, on a separate thread.
const memoryKib = 46 * 1024
const passes = 2

/**
 * Callers of the hash, most trusted first: sign-ins from an address the account has used before, other sign-ins, new
 * passwords. Each lane leaves slots for the lanes before it, so no flood locks out a known person.
 */
const lanes = ['known', 'sign-in', 'new-password'] as const
export type HashLane = (typeof lanes)[number]
const inFlightMax: Record<HashLane, number> = { known: 4, 'sign-in': 3, 'new-password': 1 }
const inFlightAllMax = 4
const waitingMax = 32 // in each lane

/** Throws `invalid_body` when the password is rejected (NIST SP 800-63B: length and lists of common passwords). */
export function checkPasswordRules(password: string, email: string): void {
  const problem = passwordProblem(canonicalPassword(password), email)
  if (problem === null) return
  const [code, message] = problem
  throw new AppError('invalid_body', message, { issues: [{ path: 'password', message, code }] })
}

function passwordProblem(password: string, email: string): [code: string, message: string] | null {
  const chars = [...password].length
  const { passwordCharsMin: min, passwordCharsMax: max } = limits
  if (chars < min)
    return ['too_short', `The password must have at least ${min} characters. Several words work well.`]
  if (chars > max) return ['too_long', `The password must have at most ${max} characters.`]
  const lower = password.toLowerCase()
  const address = email.toLowerCase()
  if (lower === address || lower === address.split('@')[0]) {
    return ['too_guessable', 'The password must not be the email address or its first part.']
  }
  if (new Set(lower).size === 1 || lower === 'sightglass' || isCommonPassword(lower)) {
    return ['too_guessable', 'This password is on lists of common passwords. Choose another one.']
  }
  return null
}

/** The PHC string to store. `rate_limited` when too many passwords are already being hashed. */
export function hashPassword(password: string, lane: HashLane = 'new-password'): Promise<string> {
  return throughGate(lane, () =>
    Bun.password.hash(canonicalPassword(password), {
      algorithm: 'argon2id',
      memoryCost: memoryKib,
      timeCost: passes,
    }),
  )
}

let dummyHash: Promise<string> | null = null

/**
 * Whether the password matches the hash. Without a hash (unknown account) it does the same work on a dummy, so that the
 * response time does not reveal which accounts exist. An invalid hash counts as a wrong password.
 */
export async function verifyPassword(
  password: string,
  hash: string | null,
  lane: HashLane = 'sign-in',
): Promise<boolean> {
  // No account can have such a password, so rejecting it early reveals nothing.
  const canonical = canonicalPassword(password)
  if (canonical === '' || canonical.length > 2 * limits.passwordCharsMax) return false
  const forms = passwordForms(password)
  if (hash === null) {
    await throughGate(lane, async () => {
      dummyHash ??= Bun.password.hash('nobody', {
        algorithm: 'argon2id',
        memoryCost: memoryKib,
        timeCost: passes,
      })
      await matchesAny(forms, await dummyHash)
    })
    return false
  }
  return throughGate(lane, () => matchesAny(forms, hash))
}

/** One after the other, because each needs the memory of a hash. */
async function matchesAny(forms: readonly string[], hash: string): Promise<boolean> {
  for (const form of forms) {
    if (await Bun.password.verify(form, hash).catch(() => false)) return true
  }
  return false
}

/** Whether a hash has outdated parameters; the next successful sign-in then stores a new one. */
export function needsRehash(hash: string): boolean {
  return !hash.startsWith(`$argon2id$v=19$m=${memoryKib},t=${passes},p=`)
}

const inFlight: Record<HashLane, number> = { known: 0, 'sign-in': 0, 'new-password': 0 }
const waiting: Record<HashLane, (() => void)[]> = { known: [], 'sign-in': [], 'new-password': [] }

async function throughGate<T>(lane: HashLane, work: () => Promise<T>): Promise<T> {
  if (mayEnter(lane)) inFlight[lane]++
  else {
    if (waiting[lane].length >= waitingMax) {
      throw new AppError('rate_limited', 'Too many passwords are being checked. Try again in 2 s.', {
        headers: {
          'retry-after': '2',
          ratelimit: '"sign-in";r=0;t=2',
          'ratelimit-policy': '"sign-in";q=1;w=2',
        },
      })
    }
    await new Promise<void>((enter) => waiting[lane].push(enter)) // the caller that leaves adds this one to `inFlight`
  }
  try {
    return await work()
  } finally {
    inFlight[lane]--
    const next = lanes.find((hashLane) => waiting[hashLane].length > 0 && mayEnter(hashLane))
    if (next !== undefined) {
      inFlight[next]++
      waiting[next].shift()?.()
    }
  }
}

function mayEnter(lane: HashLane): boolean {
  const inFlightTotal = lanes.reduce((sum, hashLane) => sum + inFlight[hashLane], 0)
  return inFlightTotal < inFlightAllMax && inFlight[lane] < inFlightMax[lane]
}

/** The passwords attackers try first: the commonest 5,000 that our length rule would let pass, in lower case. */
let commonPasswords: Set<string> | null = null

/** `lower` is the password in lower case. The set is built on first use: most runs of the executable never ask. */
function isCommonPassword(lower: string): boolean {
  commonPasswords ??= new Set(list.split('\n'))
  return commonPasswords.has(lower)
}
