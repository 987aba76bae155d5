/** The one part of the platform that every call goes through; tests and proxies may hand in their own. */

export type Fetch = (url: string, init: RequestInit) => Promise<Response>
