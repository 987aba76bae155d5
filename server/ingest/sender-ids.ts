/** The key ids of batches that the command line stores without an ingest key. */

export const demoKeyId = 'demo'
export const importKeyId = 'import'
