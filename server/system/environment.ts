/** The only reader of the process environment. */

export type Environment = Record<string, string | undefined>

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']

/**
 * Copies the environment, then removes from the process what must not have side effects: `fetch` obeys proxy variables
 * even for loopback, and child processes must not inherit `secrets`.
 */
export function takeEnvironment(
  secrets: readonly string[],
  environment: Environment = process.env,
): Environment {
  const copy = { ...environment }
  for (const name of proxyVariables) {
    delete environment[name]
    delete environment[name.toLowerCase()]
  }
  for (const name of secrets) delete environment[name]
  return copy
}

/** Sets a variable that the runtime reads when a process begins; false when it was set before. */
export function setForRuntime(name: string, value: string, environment: Environment = process.env): boolean {
  if (environment[name] !== undefined) return false
  environment[name] = value
  return true
}
