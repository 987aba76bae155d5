/** Replaces argon2id by SHA-256 in this process, because one hash of the server costs 100 ms of a core. */

const ownCosts = { memoryCost: 46 * 1024, timeCost: 2 }

/** The parameters of the server, so that no sign-in hashes the password again, and a salt that no hash has. */
const prefix = '$argon2id$v=19$m=47104,t=2,p=1$c2hhMjU2$'

const real = { hash: Bun.password.hash, verify: Bun.password.verify }
let users = 0

/** For tests that are not about passwords. Lasts until every caller has called the returned function. */
export function quickPasswords(): () => void {
  if (users++ === 0) Object.assign(Bun.password, { hash: quickHash, verify: quickVerify })
  return () => {
    if (--users === 0) Object.assign(Bun.password, real)
  }
}

/** Hashes with other parameters stay real. */
const quickHash: typeof Bun.password.hash = (password, algorithm) => {
  const isOurs =
    typeof algorithm === 'object' &&
    algorithm.algorithm === 'argon2id' &&
    algorithm.memoryCost === ownCosts.memoryCost &&
    algorithm.timeCost === ownCosts.timeCost
  return isOurs ? Promise.resolve(sha256(password)) : real.hash(password, algorithm)
}

const quickVerify: typeof Bun.password.verify = (password, hash, algorithm) =>
  String(hash).startsWith(prefix)
    ? Promise.resolve(hash === sha256(password))
    : real.verify(password, hash, algorithm)

function sha256(password: Parameters<typeof Bun.password.hash>[0]): string {
  return prefix + new Bun.CryptoHasher('sha256').update(password).digest('base64')
}
