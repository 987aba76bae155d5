/** Units of time in milliseconds and of size in bytes, for the store, the server and the dashboard. */

export const secondMs = 1_000
export const minuteMs = 60 * secondMs
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs
export const weekMs = 7 * dayMs

export const mebibyte = 1_024 ** 2
