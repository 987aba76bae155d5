/** Paths and links below a base path. */
import { expect, test } from 'bun:test'
import { h, options } from 'preact'
import { linkBelowBase, withoutBase } from './router.ts'

test('the base path is removed at whole path segments only', () => {
  expect(withoutBase('/sightglass/logs', '/sightglass')).toBe('/logs')
  expect(withoutBase('/sightglass', '/sightglass')).toBe('/')
  expect(withoutBase('/sightglassy/logs', '/sightglass')).toBe('/sightglassy/logs')
  expect(withoutBase('/logs/logs', '/logs')).toBe('/logs')
  expect(withoutBase('/logs', '')).toBe('/logs')
})

test('only links of this dashboard get the base path', () => {
  const vnodeHook = options.vnode
  linkBelowBase('/a')
  try {
    const hrefs = ['/logs', '/a/b', '//elsewhere.example/', 'https://elsewhere.example/', '#part']
    expect(hrefs.map((href) => h('a', { href }).props.href)).toEqual(['/a/logs', '/a/a/b', ...hrefs.slice(2)])
    expect(h('link', { href: '/logs' }).props.href).toBe('/logs')
  } finally {
    if (vnodeHook === undefined) delete options.vnode
    else options.vnode = vnodeHook
  }
})
