/** How many days the appliance stores counts per hour and ended deliveries of webhooks. No setting changes it. */

/** Counts are stored much longer than their events, but not forever (contract §7). */
export const countsRetentionDays = 400

export const deliveredRetentionDays = 7
export const deadLetterRetentionDays = 90
