/** The settings of a session, so that no default of a role or a database changes what a statement reads or writes. */

type Settings = { [name: string]: string | number }

/**
 * Left out: `synchronous_commit` and `default_transaction_read_only`, which are the operator's choice (managed servers
 * turn the second one on when a disk is nearly full) and findings of `doctor`; `session_replication_role` and
 * `lc_messages`, which only a superuser may set; and `transaction_timeout`, which PostgreSQL 15 does not know.
 */

/** On in every session: a role that turned one off would make reads slow. */
const planner = [
  'bitmapscan',
  'hashagg',
  'hashjoin',
  'indexonlyscan',
  'indexscan',
  'material',
  'memoize',
  'mergejoin',
  'nestloop',
  'seqscan',
  'sort',
  'tidscan',
]

/** All of them exist since PostgreSQL 15, and every account may set them. */
export const fixedSettings: Settings = {
  // The text of values.
  bytea_output: 'hex',
  datestyle: 'ISO, YMD',
  extra_float_digits: 1,
  intervalstyle: 'postgres',
  lc_monetary: 'C',
  lc_numeric: 'C',
  lc_time: 'C',
  timezone: 'UTC',
  // The meaning of statements.
  array_nulls: 'on',
  standard_conforming_strings: 'on',
  transform_null_equals: 'off',
  // Which rows a statement sees.
  default_transaction_deferrable: 'off',
  default_transaction_isolation: 'read committed',
  gin_fuzzy_search_limit: '0', // the driver sends no number 0
  row_security: 'off', // an error instead of hidden rows
  // Time.
  idle_session_timeout: '0',
  jit: 'off', // compiling takes longer than any of our statements
  plan_cache_mode: 'auto',
  ...Object.fromEntries(planner.map((method) => [`enable_${method}`, 'on'])),
}

/** Settings that a transaction under way no longer takes from its defaults. */
const ofTransaction: { [name: string]: string } = {
  default_transaction_deferrable: 'transaction_deferrable',
  default_transaction_isolation: 'transaction_isolation',
}

/** What a transaction sets through a pooler. `idle_session_timeout` belongs to the pooler's own sessions. */
export function localSettings(settings: Settings): string {
  return Object.entries(settings)
    .filter(([name]) => name !== 'idle_session_timeout')
    .map(([name, value]) => `; SET LOCAL ${ofTransaction[name] ?? name} = ${inStatement(name, value)}`)
    .join('')
}

/** A search path is a list of names, which quotes would make one name. */
function inStatement(name: string, value: string | number): string {
  return typeof value === 'number' || name === 'search_path' ? String(value) : `'${value}'`
}
