/** What a signing secret is sealed for, so that it opens only for the endpoint or organization it signs for. */

export function sealPurpose({ orgId, endpointId }: { orgId: string; endpointId: string | null }): string {
  return endpointId === null ? `webhook-org:${orgId}` : `webhook-endpoint:${endpointId}`
}
