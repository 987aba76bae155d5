/** What the client calls itself in the `user-agent` header; the build checks it against package.json. */
export const userAgent = 'sightglass-sdk/0.1.0'
