/** What stands where the id of an ingest key does in batches that the command line stores. */

export const demoKeyId = 'demo'
export const importKeyId = 'import'
