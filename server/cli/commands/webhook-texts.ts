/** What help says about the webhook verbs. */
import type { VerbText } from './verb-text.ts'

export const webhookTexts = {
  'webhook secret': {
    summary: 'print the secret that signs deliveries to plain URLs, or replace it',
    usage: 'webhook secret [--org ORG] [--rotate --yes]',
    about: [
      'After --rotate deliveries are signed with both secrets for a day, so receivers can change in peace.',
    ],
    examples: ['sightglass webhook secret --org default --json'],
  },
  'webhook test': {
    summary: 'send a payload to a URL, or a sample batch to an endpoint',
    usage: 'webhook test URL [--payload JSON] [--org ORG] | webhook test ENDPOINT_ID [--org ORG]',
    about: [
      'A payload is signed with the secret of the organization. An endpoint gets a trace.batch with one sample event,',
      'signed with its own secret and marked with "test": true; its sequence stays as it is.',
    ],
    examples: [
      'sightglass webhook test ep_3q2uVbkz0c5mYw1n8sJx4A',
      'sightglass webhook test https://hooks.example.com/in --payload \'{"hello":"world"}\'',
    ],
  },
  'webhook list': {
    summary: 'list deliveries, newest first',
    usage: 'webhook list [--status pending|delivered|dead_letter] [--limit N] [--org ORG]',
    about: [],
    examples: ['sightglass webhook list --status dead_letter'],
  },
  'webhook show': {
    summary: 'show one delivery with its payload and every attempt',
    usage: 'webhook show DELIVERY_ID [--org ORG]',
    about: [],
    examples: ['sightglass webhook show wh_3q2uVbkz0c5mYw1n8sJx4A'],
  },
  'webhook replay': {
    summary: 'send an ended delivery again, all dead letters, or a range of events to an endpoint',
    usage: 'webhook replay DELIVERY_ID | --dead | ENDPOINT_ID --from PLACE [--until PLACE] [--org ORG]',
    about: [
      'The same record and message id go out again; attempts count from 0, the log of attempts is kept.',
      'A range is made into new batches with new sequence numbers; what is new waits until it is through. PLACE is a',
      'position of the endpoint (events behind --from, up to and including --until) or a time of arrival such as',
      '2026-06-23T12:00:00Z (from then on, and before then).',
    ],
    examples: [
      'sightglass webhook replay wh_3q2uVbkz0c5mYw1n8sJx4A',
      'sightglass webhook replay --dead',
      'sightglass webhook replay ep_3q2uVbkz0c5mYw1n8sJx4A --from 2026-06-23T12:00:00Z --until 2026-06-23T13:00:00Z',
    ],
  },
  'webhook add': {
    summary: 'add an endpoint that hears of new events; its secret is shown once',
    usage:
      'webhook add URL [--type T …] [--outcome O …] [--class C …] [--site ID …] [--label L] ' +
      '[--retry-waits A,…] [--org ORG]',
    about: [
      'URL is http or https, file:NAME.ndjson below --sink-dir, or syslog+udp://HOST and syslog+tcp://HOST.',
      'A type that no event has yet is accepted with a warning. --retry-waits replaces the three waits of the server.',
      'A type may end in .* for all that begin so. Private addresses need --webhook-allow of the server.',
    ],
    examples: ['sightglass webhook add https://siem.example.com/in --type "authz.*" --outcome blocked'],
  },
  'webhook endpoints': {
    summary: 'list the endpoints with their state',
    usage: 'webhook endpoints [--org ORG]',
    about: [],
    examples: ['sightglass webhook endpoints --json'],
  },
  'webhook pause': {
    summary: 'pause an endpoint; nothing is lost',
    usage: 'webhook pause ENDPOINT_ID [--org ORG]',
    about: [],
    examples: ['sightglass webhook pause ep_3q2uVbkz0c5mYw1n8sJx4A'],
  },
  'webhook resume': {
    summary: 'resume a paused endpoint where it stopped',
    usage: 'webhook resume ENDPOINT_ID [--org ORG]',
    about: [],
    examples: ['sightglass webhook resume ep_3q2uVbkz0c5mYw1n8sJx4A'],
  },
  'webhook rotate-secret': {
    summary: 'give an endpoint a new secret; the old one signs too for a day',
    usage: 'webhook rotate-secret ENDPOINT_ID --yes [--org ORG]',
    about: [],
    examples: ['sightglass webhook rotate-secret ep_3q2uVbkz0c5mYw1n8sJx4A --yes'],
  },
  'webhook remove': {
    summary: 'remove an endpoint; what waits for it becomes a dead letter',
    usage: 'webhook remove ENDPOINT_ID [--org ORG]',
    about: [],
    examples: ['sightglass webhook remove ep_3q2uVbkz0c5mYw1n8sJx4A'],
  },
} satisfies { [verb: string]: VerbText }
