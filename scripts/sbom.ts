/** The bill of materials of a release in CycloneDX 1.6: the components of the executables with URL and licence. */
import type { Component } from './components.ts'
import type { Foreign } from './packages/packages.ts'

/** The same components give the same bytes: no time and no random serial number. */
export function cycloneDx(
  version: string,
  components: Pick<Component, 'name' | 'version' | 'license'>[],
  foreign: Foreign[] = [],
): string {
  const productPurl = `pkg:generic/sightglass@${version}`
  const parts = components.map((component) => ({
    type: 'library',
    'bom-ref': purl(component),
    name: component.name,
    version: component.version,
    purl: purl(component),
    licenses: [{ license: { id: component.license } }],
  }))
  const libraries = foreign.map(({ architecture, libcVersion }) => {
    const ref = `pkg:deb/debian/libc6@${encodeURIComponent(libcVersion)}?arch=${architecture}`
    return {
      type: 'library',
      'bom-ref': ref,
      name: 'libc6',
      version: libcVersion,
      purl: ref,
      description: `only in the image for ${architecture}`,
      licenses: [{ license: { id: 'LGPL-2.1-or-later' } }],
    }
  })
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': productPurl,
        name: 'sightglass',
        version,
        purl: productPurl,
        licenses: [{ license: { id: 'Apache-2.0' } }],
      },
    },
    components: [...parts, ...libraries],
    dependencies: [{ ref: productPurl, dependsOn: [...parts, ...libraries].map((part) => part['bom-ref']) }],
  }
  return `${JSON.stringify(bom, null, 2)}\n`
}

function purl({ name, version }: Pick<Component, 'name' | 'version'>): string {
  return `pkg:npm/${name.replace(/^@/, '%40')}@${version}`
}
