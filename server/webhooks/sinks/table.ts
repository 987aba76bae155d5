/** Every kind of destination. One line adds one. */
export { file } from './file.ts'
export { http } from './http.ts'
export { syslog } from './syslog.ts'
