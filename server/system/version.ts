/** The version of this release, from package.json, compiled into the executable. */
export { version } from '../../package.json'
