/** The recorder of WebMCP in a page made of test doubles. tests/e2e/sdk-webmcp.test.ts has the real one. */
import { expect, test } from 'bun:test'
import type { ToolChange } from '../client/client.ts'
import type { TraceEvent } from '../client/event.ts'
import type { ModelContext, PageWindow } from './model-context.ts'
import { testModelContext, type TestModelContext } from './test-model-context.ts'
import { recorderOf } from './recorder.ts'
import { captureOn } from './webmcp.ts'

interface TestForm extends EventTarget {
  getAttribute(name: string): string | null
}

/** A page whose timers run when the test says so. */
function setUp({ context = testModelContext({ casts: true }) as ModelContext | null } = {}) {
  const timers: (() => void)[] = []
  const forms: TestForm[] = []
  const SubmitEvent = { prototype: { respondWith(): void {} } }
  const page = Object.assign(new EventTarget(), {
    setTimeout: (run: () => void) => timers.push(run),
    location: { pathname: '/cart' },
    performance: { now: () => clock.ms },
    document: { forms, ...(context === null ? {} : { modelContext: context }) },
    SubmitEvent,
  })
  const clock = { ms: 1_000 }
  const events: TraceEvent[] = []
  const changes: ToolChange[] = []
  const sink = {
    trace: (event: TraceEvent) => void events.push(event),
    tools: (change: ToolChange) => void changes.push(change),
  }
  /** Lets the page's timers and promises run, including the tasks of the context. */
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await new Promise((resolve) => setTimeout(resolve))
      for (const run of timers.splice(0)) run()
    }
    await new Promise((resolve) => setTimeout(resolve))
  }
  const addForm = (name: string): TestForm => {
    const form = Object.assign(new EventTarget(), {
      getAttribute: (attribute: string) => (attribute === 'toolname' ? name : null),
    })
    forms.push(form)
    return form
  }
  const window = page as unknown as PageWindow & EventTarget
  return { page: window, clock, events, changes, sink, settle, addForm, SubmitEvent }
}

const context = (page: PageWindow) => page.document.modelContext as TestModelContext
const adder = {
  name: 'add',
  description: 'Adds two numbers.',
  inputSchema: { type: 'object', properties: { password: { type: 'string' } } },
  annotations: { readOnlyHint: true },
  execute: ({ a, b }: { a: number; b: number }) => a + b,
}

test('a registration is surfaced and reported once, a call has its duration', async () => {
  const { page, clock, events, changes, sink, settle } = setUp()
  captureOn(page, sink)
  await context(page).registerTool({
    ...adder,
    execute: async ({ a, b }: { a: number; b: number }) => {
      clock.ms += 12.34
      return a + b
    },
  })
  await settle()
  const { name, description, inputSchema, annotations } = adder
  expect(changes).toEqual([{ tools: [{ name, description, inputSchema, annotations }], removed: [] }])
  expect(await context(page).executeTool('add', { a: 1, b: 2 })).toBe('3')
  await settle()
  expect(changes.length).toBe(1)
  const agent = { class: 'webmcp', trust: 'detected' }
  expect(events).toEqual([
    {
      type: 'tool.surfaced',
      tool: 'add',
      agent,
      occurredAt: expect.any(Number),
      metadata: { page: '/cart' },
    },
    {
      type: 'tool.executed',
      tool: 'add',
      outcome: 'success',
      durationMs: 12.3,
      agent,
      occurredAt: expect.any(Number),
      metadata: { page: '/cart' },
    },
  ])
})

test('before a client connects, tools and at most 1,000 events wait; then they are sent in order', async () => {
  const { page, events, changes, sink, settle } = setUp()
  recorderOf(page)
  await context(page).registerTool(adder)
  await settle()
  for (let index = 0; index < 1_100; index++) await context(page).executeTool('add', { a: 1, b: 2 })
  const stop = captureOn(page, sink)
  expect(events.length).toBe(1_000)
  await settle()
  expect(events.map(({ type }) => type)).toEqual([...Array(1_000).fill('tool.executed'), 'tool.surfaced'])
  expect(changes.map(({ tools }) => tools.map(({ name }) => name))).toEqual([['add']])
  stop()
  await context(page).executeTool('add', { a: 1, b: 2 })
  await settle()
  expect(events.length).toBe(1_001)
  expect(recorderOf(page)).toBe(recorderOf(page))
})

test('unregistration by signal and a new descriptor are reported', async () => {
  const { page, events, changes, sink, settle } = setUp()
  captureOn(page, sink)
  const controller = new AbortController()
  await context(page).registerTool(adder, { signal: controller.signal })
  await settle()
  controller.abort()
  await context(page).registerTool({ ...adder, description: 'Adds.' })
  await settle()
  expect(changes.at(-1)).toMatchObject({ tools: [{ name: 'add', description: 'Adds.' }], removed: [] })
  const second = new AbortController()
  await context(page).registerTool({ ...adder, name: 'other' }, { signal: second.signal })
  await settle()
  second.abort()
  await settle()
  expect(changes.at(-1)).toEqual({ tools: [], removed: ['other'] })
  expect(events.map(({ type, tool, metadata }) => [type, tool, metadata?.['change']])).toEqual([
    ['tool.surfaced', 'add', undefined],
    ['tool.surfaced', 'add', 'changed'],
    ['tool.surfaced', 'other', undefined],
    ['tool.unregistered', 'other', undefined],
  ])
})

test('failures, aborts and calls that the page leaves behind; no message unless asked', async () => {
  const run = async (content: boolean) => {
    const { page, events, sink, settle } = setUp()
    captureOn(page, sink, { content })
    const register = (name: string, execute: (input: unknown, options: { signal: AbortSignal }) => unknown) =>
      context(page).registerTool({ name, description: name, execute })
    await register('rejects', async () => Promise.reject(new RangeError('card 4111')))
    await register('throws', () => {
      throw 'card 4111'
    })
    await register('waits', (_, { signal }) => {
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    })
    await register('leaves', () => new Promise(() => {}))
    const catches = (promise: Promise<unknown>): void => void promise.catch(() => {})
    catches(context(page).executeTool('rejects', { card: '4111' }))
    catches(context(page).executeTool('throws', {}))
    const controller = new AbortController()
    catches(context(page).executeTool('waits', {}, { signal: controller.signal }))
    controller.abort()
    catches(context(page).executeTool('leaves', {}))
    await settle()
    page.dispatchEvent(new Event('pagehide'))
    const calls = events.filter(({ type }) => type === 'tool.executed')
    if (!content) expect(JSON.stringify(calls)).not.toContain('4111')
    return Object.fromEntries(
      calls.map(({ tool, outcome, error, metadata }) => [tool, { outcome, error, metadata }]),
    )
  }
  expect(await run(false)).toEqual({
    rejects: { outcome: 'error', error: 'RangeError', metadata: { page: '/cart' } },
    throws: { outcome: 'error', error: 'string', metadata: { page: '/cart' } },
    waits: { outcome: 'aborted', error: undefined, metadata: { page: '/cart' } },
    leaves: { outcome: 'aborted', error: 'PageLeft', metadata: { page: '/cart' } },
  })
  expect(await run(true)).toMatchObject({
    rejects: { error: 'RangeError: card 4111', metadata: { arguments: { card: '4111' } } },
    throws: { error: 'card 4111', metadata: { arguments: {} } },
  })
})

test('content is a copy of at most 8,192 characters', async () => {
  const { page, events, sink, settle } = setUp()
  captureOn(page, sink, { content: true })
  const result = { list: [1] }
  await context(page).registerTool({ name: 'a', description: 'a', execute: () => result })
  await context(page).executeTool('a', { text: 'x'.repeat(9_000) })
  result.list.push(2)
  await settle()
  const call = events.find(({ type }) => type === 'tool.executed')
  expect(call?.metadata).toMatchObject({ arguments: '[9011 characters]', result: { list: [1] } })
})

test('an implementation without getTools, with hostile names and schemas', async () => {
  const tools: { [name: string]: (input: unknown) => unknown } = {}
  const polyfill = {
    registerTool(tool: { name: string; execute(input: unknown): unknown }) {
      tools[tool.name] = (input) => tool.execute(input)
      return undefined
    },
  } as unknown as ModelContext
  const { page, events, changes, sink, settle } = setUp({ context: polyfill })
  captureOn(page, sink)
  const cycle: { [name: string]: unknown } = {}
  cycle['self'] = cycle
  const controller = new AbortController()
  const names = [`<img src=x onerror=alert(1)>\0\ud800`, '__proto__x', 'x'.repeat(300)]
  for (const name of names) polyfill.registerTool({ name, execute: () => 1 }, { signal: controller.signal })
  polyfill.registerTool({ name: 'cycle', inputSchema: cycle, execute: () => 1 })
  polyfill.registerTool({ name: 'huge', inputSchema: { text: 'x'.repeat(70_000) }, execute: () => 1 })
  for (const name of names) expect(tools[name]?.({})).toBe(1)
  await settle()
  const reported = changes.flatMap((change) => change.tools.map(({ name }) => name))
  expect(reported).toEqual([
    `<img src=x onerror=alert(1)>\ufffd\ufffd`,
    '__proto__x',
    'x'.repeat(128),
    'cycle',
    'huge',
  ])
  expect(changes[0]?.tools.every((tool) => tool.inputSchema === undefined)).toBe(true)
  expect(events.filter(({ type }) => type === 'tool.executed').map(({ tool }) => tool)).toEqual([
    `<img src=x onerror=alert(1)>\ufffd\ufffd`,
    '__proto__x',
    'x'.repeat(200),
  ])
  controller.abort()
  await settle()
  expect(changes.at(-1)?.removed.length).toBe(3)
})

test('an implementation that arrives later is found when the document is loaded', async () => {
  const { page, changes, sink, settle } = setUp({ context: null })
  captureOn(page, sink)
  page.document.modelContext = testModelContext({ casts: false })
  page.dispatchEvent(new Event('DOMContentLoaded'))
  await context(page).registerTool(adder)
  await settle()
  expect(changes[0]?.tools.map(({ name }) => name)).toEqual(['add'])
})

const createEvent = (type: string, fields: object): Event => Object.assign(new Event(type), fields)

test('a form is called: answered, refused, canceled, reset, and submitted without an answer', async () => {
  const { page, clock, events, sink, settle, addForm, SubmitEvent } = setUp()
  captureOn(page, sink)
  const form = addForm('search')
  const activate = (): void => {
    clock.ms += 100
    for (const target of [page, context(page)])
      target.dispatchEvent(createEvent('toolactivated', { toolName: 'search' }))
    clock.ms += 1_000
  }
  /** The browser's event reaches the window first, then the form. */
  const submit = (answer?: (event: Event) => void): void => {
    const event = Object.defineProperty(createEvent('submit', { agentInvoked: true }), 'target', {
      value: form,
    })
    page.dispatchEvent(event)
    answer?.(event)
  }
  const respond = (event: Event, value: unknown): void => {
    Reflect.apply(SubmitEvent.prototype.respondWith, event, [value])
  }
  activate()
  submit((event) => respond(event, Promise.resolve('found')))
  await settle()
  activate()
  submit((event) => respond(event, Promise.reject(new TypeError('no'))))
  await settle()
  activate()
  submit()
  await settle()
  activate()
  page.dispatchEvent(createEvent('toolcancel', { toolName: 'search' }))
  activate()
  page.dispatchEvent(Object.defineProperty(new Event('reset'), 'target', { value: form }))
  activate()
  page.dispatchEvent(Object.defineProperty(new Event('invalid'), 'target', { value: { form } }))
  page.dispatchEvent(createEvent('toolactivated', { toolName: 'a-function' })) // reports its own calls
  activate()
  submit()
  page.dispatchEvent(new Event('pagehide')) // the form navigates
  const calls = events.map(({ tool, outcome, error, durationMs, metadata }) => {
    expect([tool, metadata]).toEqual(['search', { declarative: true, page: '/cart' }])
    return [outcome, error, durationMs]
  })
  expect(calls).toEqual([
    ['success', undefined, 1_000],
    ['error', 'TypeError', 1_000],
    ['success', undefined, 1_000],
    ['aborted', undefined, 1_000],
    ['aborted', undefined, 1_000],
    ['error', 'InvalidInput', 1_000],
    ['success', undefined, 1_000],
  ])
})

test('with toolautosubmit the browser submits or refuses a form before it activates it', async () => {
  const { page, events, sink, settle, addForm } = setUp()
  captureOn(page, sink)
  const form = addForm('search')
  const activate = (): boolean =>
    context(page).dispatchEvent(createEvent('toolactivated', { toolName: 'search' }))
  const submit = createEvent('submit', { agentInvoked: true })
  page.dispatchEvent(Object.defineProperty(submit, 'target', { value: form }))
  activate()
  await settle()
  page.dispatchEvent(Object.defineProperty(new Event('invalid'), 'target', { value: { form } }))
  activate()
  Object.assign(form, { matches: () => false }) // an argument that the form does not have
  activate()
  await settle()
  expect(events.map(({ outcome, error }) => [outcome, error])).toEqual([
    ['success', undefined],
    ['error', 'InvalidInput'],
    ['error', 'InvalidInput'],
  ])
})
