/** The bill of materials of a release in CycloneDX 1.6: the components of the executables with URL and licence. */
import type { Component } from './components.ts'

/** The same components give the same bytes: no time and no random serial number. */
export function cycloneDx(
  version: string,
  components: Pick<Component, 'name' | 'version' | 'license'>[],
): string {
  const own = `pkg:generic/sightglass@${version}`
  const parts = components.map((component) => ({
    type: 'library',
    'bom-ref': purl(component),
    name: component.name,
    version: component.version,
    purl: purl(component),
    licenses: [{ license: { id: component.license } }],
  }))
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': own,
        name: 'sightglass',
        version,
        purl: own,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components: parts,
    dependencies: [{ ref: own, dependsOn: parts.map((part) => part['bom-ref']) }],
  }
  return `${JSON.stringify(bom, null, 2)}\n`
}

function purl({ name, version }: Pick<Component, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`
}
