/** The site memory of the demo site: three snapshots, each fuller than the previous one. */
import { dayMs } from './rhythm.ts'

/** What is pushed, and when. */
export interface DemoPush<T> {
  atMs: number
  pushed: T
}

export interface DemoSnapshot {
  demo: true
  siteMap: { pages: object[]; navigation?: object }
  policies: { [name: string]: string | string[] }
  workflows: object[]
  pageContexts?: object
}

const shop = [
  {
    path: '/',
    name: 'Home',
    purpose: 'Starts every visit: search, categories, offers of the week.',
    availableActions: ['search', 'open category'],
  },
  {
    path: '/products',
    name: 'Products',
    purpose: 'Lists everything that is for sale, filtered by category and price.',
    availableActions: ['filter', 'sort', 'open product'],
  },
  {
    path: '/products/kettle-2',
    name: 'Kettle 2',
    purpose: 'One product: price, stock, delivery time.',
    availableActions: ['add to cart', 'compare'],
  },
  { path: '/products/lamp-9', name: 'Lamp 9', availableActions: ['add to cart', 'compare'] },
  { path: '/categories/kitchen', name: 'Kitchen', purpose: 'Kettles, pans and knives.' },
  { path: '/faq', name: 'Questions', purpose: 'Answers what customers ask before they order.' },
]

const added = [
  { path: '/blog', name: 'Blog', purpose: 'Stories about how things are made.' },
  { path: '/docs/api', name: 'API', purpose: 'How partners order by program.' },
  { path: '/account', name: 'Account', purpose: 'Orders and addresses; needs a linked identity.' },
  {
    path: '/checkout',
    name: 'Checkout',
    purpose: 'Address, delivery, payment; a person confirms.',
    availableActions: ['choose delivery', 'pay'],
  },
]

const workflows = [
  { name: 'Buy a product', steps: ['/products', '/products/{product}', '/checkout'], needs: 'linked' },
  { name: 'Ask for delivery time', steps: ['/products/{product}'], needs: 'nothing' },
]

const navigation = {
  main: ['/', '/products', '/categories/kitchen', '/faq'],
  footer: ['/blog', '/docs/api'],
}

/** Oldest first. The server computes the scores 50, 67 and 83. */
export function demoMemory(nowMs: number): DemoPush<DemoSnapshot>[] {
  const first: DemoSnapshot = {
    demo: true,
    siteMap: { pages: shop },
    policies: {
      returns: 'Unused goods may be returned within 30 days.',
      crawling: 'Public pages may be read and indexed. /account, /checkout and /admin are closed.',
    },
    workflows: workflows.slice(0, 1),
  }
  const second: DemoSnapshot = {
    ...first,
    siteMap: { pages: [...shop, ...added.slice(0, 2)], navigation },
    policies: {
      ...first.policies,
      privacy: 'No personal data is given to agents without a linked identity.',
    },
    workflows,
  }
  const third: DemoSnapshot = {
    ...second,
    siteMap: { pages: [...shop, ...added], navigation },
    policies: {
      ...second.policies,
      returns: 'Unused goods may be returned within 14 days.',
      payment: [
        'A person confirms every payment.',
        'Agents may prepare an order of up to 200 euros; above that a call is reviewed.',
      ],
    },
    pageContexts: {
      '/checkout': 'Prices include tax. Delivery to islands takes two days longer.',
      '/products': 'Stock is counted every five minutes.',
    },
  }
  return [
    { atMs: nowMs - 31 * dayMs, pushed: first },
    { atMs: nowMs - 16 * dayMs, pushed: second },
    { atMs: nowMs - 4 * dayMs, pushed: third },
  ]
}
