/** A wrapped tool behaves as the bare one: random tools and calls give the same log, microtask by microtask. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { replaceMethod } from './model-context.ts'
import { testModelContext, type TestModelContext } from './test-model-context.ts'
import { watchedTool, type ToolCall } from './wrap-tool.ts'

/** `SIGHTGLASS_RUNS=100000 bun test sdk/browser/wrap-tool.test.ts` is the long run. */
const numRuns = Number(process.env.SIGHTGLASS_RUNS ?? 500)

const results = [
  'number',
  'text',
  'object',
  'undefined',
  'function',
  'throw',
  'throw-text',
  'getter-then',
  'async',
  'async-throw',
  'promise',
  'rejected',
  'never',
  'thenable',
  'thenable-rejects',
  'thenable-throws',
  'until-abort',
  'own-then',
  'subclass',
] as const
const tool = fc.record({
  name: fc.oneof(
    fc.constantFrom('a', 'b', 'c'),
    fc.constantFrom('', 'é', '__proto__', 'x'.repeat(129), null, 7),
  ),
  result: fc.constantFrom(...results),
  ticks: fc.nat(4),
  shape: fc.constantFrom(
    'plain',
    'frozen',
    'getters',
    'throwing getter',
    'prototype',
    'no execute',
    'null',
    'symbol',
  ),
  schema: fc.constantFrom('none', 'plain', 'toJSON', 'cycle'),
})
const step = fc.oneof(
  fc.record({ kind: fc.constant('register' as const), tool, signal: fc.boolean(), detached: fc.boolean() }),
  fc.record({ kind: fc.constant('call' as const), name: fc.constantFrom('a', 'b', 'c'), abort: fc.nat(6) }),
  fc.record({ kind: fc.constant('unregister' as const), at: fc.nat(8) }),
)
type ToolPlan = typeof tool extends fc.Arbitrary<infer T> ? T : never
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

test('law: wrapped equals bare, and every call that ends is reported once', async () => {
  const scripts = fc.array(step, { minLength: 1, maxLength: 14 })
  await fc.assert(
    fc.asyncProperty(scripts, fc.boolean(), async (steps, casts) => {
      const bare = await run(steps, testModelContext({ casts }))
      const ends: string[] = []
      const context = testModelContext({ casts })
      wrap(context, ends)
      const wrapped = await run(steps, context)
      expect(wrapped.log).toEqual(bare.log)
      expect(ends.length).toBe(wrapped.ended)
    }),
    { numRuns },
  )
}, 3_600_000)

function wrap(context: TestModelContext, ends: string[]): void {
  replaceMethod(context, 'registerTool', (register, self, args) => {
    const start = (name: string): ToolCall => {
      let isOpen = true
      return {
        end(outcome) {
          if (isOpen) ends.push(`${name} ${outcome}`)
          isOpen = false
        },
      }
    }
    return Reflect.apply(register, self, [watchedTool(args[0], start).view, ...args.slice(1)])
  })
}

/** Everything that the page and the agent can observe, in order. `ended` counts the calls whose result settled. */
async function run(steps: Step[], context: TestModelContext): Promise<{ log: string[]; ended: number }> {
  const log: string[] = []
  const note = (text: string): void => void log.push(text)
  const controllers: AbortController[] = []
  const settled = { count: 0 }
  const ticking = (async () => {
    for (let tick = 0; tick < steps.length * 3 + 20; tick++) {
      note(`tick ${tick}`)
      await null
    }
  })()
  for (const [index, currentStep] of steps.entries()) {
    await null
    if (currentStep.kind === 'register') register(currentStep, index)
    else if (currentStep.kind === 'unregister')
      controllers[currentStep.at % (controllers.length || 1)]?.abort()
    else call(currentStep, index)
  }
  await ticking
  return { log, ended: settled.count }

  function register(plan: Step & { kind: 'register' }, index: number): void {
    const controller = new AbortController()
    if (plan.signal) controllers.push(controller)
    const madeTool = makeTool(plan.tool, `t${index}`, note, settled)
    const { registerTool } = context
    const self = plan.detached ? undefined : context
    const promise = registerTool.call(
      self as never,
      madeTool,
      plan.signal ? { signal: controller.signal } : undefined,
    )
    note(
      `registerTool gives ${Object.prototype.toString.call(promise)} ${registerTool.name} ${registerTool.length}`,
    )
    promise.then(
      () => note(`registered ${index}`),
      (error: unknown) => note(`not registered ${index}: ${String(error)}`),
    )
  }

  function call({ name, abort }: Step & { kind: 'call' }, index: number): void {
    const controller = new AbortController()
    context.executeTool(name, { at: index }, { signal: controller.signal }).then(
      (result) => note(`result ${index}: ${result}`),
      (error: unknown) => note(`error ${index}: ${String(error)}`),
    )
    void (async () => {
      for (let tick = 0; tick < abort; tick++) await null
      if (abort > 0) controller.abort(new Error(`aborted ${index}`))
    })()
  }
}

type Note = (text: string) => void

function makeTool(plan: ToolPlan, id: string, note: Note, settled: { count: number }): unknown {
  if (plan.shape === 'null') return null
  const name = plan.name === 7 ? { toString: () => (note(`${id} name`), 'c') } : plan.name
  const fields: { [name: string]: unknown } = {
    name: plan.shape === 'symbol' ? Symbol('s') : name,
    description: 'does something',
    ...(plan.shape === 'no execute' ? {} : { execute: makeExecute(plan, id, note, settled) }),
    ...(plan.schema === 'none' ? {} : { inputSchema: schemaOf(plan.schema, id, note) }),
    extra: 1,
  }
  if (plan.shape === 'plain' || plan.shape === 'symbol' || plan.shape === 'no execute') return fields
  if (plan.shape === 'frozen') return Object.freeze(fields)
  if (plan.shape === 'prototype') return Object.create(fields)
  const toolObject = {}
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(toolObject, name, {
      get(this: unknown) {
        note(`${id} reads ${name}, this ${this === toolObject}`)
        if (plan.shape === 'throwing getter' && name === 'inputSchema') throw new RangeError(`${id} ${name}`)
        return value
      },
    })
  }
  return toolObject
}

function schemaOf(kind: ToolPlan['schema'], id: string, note: Note): object {
  const schema: { [name: string]: unknown } = { type: 'object', properties: { q: { type: 'string' } } }
  if (kind === 'cycle') schema['self'] = schema
  if (kind === 'toJSON') schema['toJSON'] = () => (note(`${id} toJSON`), { type: 'object' })
  return schema
}

function makeExecute({ result, ticks }: ToolPlan, id: string, note: Note, settled: { count: number }) {
  const done = <T>(value: T): T => {
    settled.count++
    return value
  }
  const later = async (): Promise<void> => {
    for (let tick = 0; tick < ticks; tick++) await null
  }
  return function execute(this: unknown, ...args: unknown[]): unknown {
    const { signal } = args[1] as { signal: AbortSignal }
    note(`${id} called: ${JSON.stringify(args[0])}, ${args.length} arguments, this ${String(this)}`)
    signal.addEventListener('abort', () => note(`${id} sees the abort: ${String(signal.reason)}`))
    return outcomes[result]({ note, id, done, later, signal })
  }
}

interface Tools {
  note: Note
  id: string
  done: <T>(value: T) => T
  later: () => Promise<void>
  signal: AbortSignal
}

const outcomes: { [name in (typeof results)[number]]: (tools: Tools) => unknown } = {
  number: ({ done }) => done(5),
  text: ({ done }) => done('five'),
  object: ({ done }) => done({ content: [{ type: 'text', text: 'x' }] }),
  undefined: ({ done }) => done(undefined),
  function: ({ done }) => done(() => 1),
  throw: ({ done, id }) => {
    done(0)
    throw new TypeError(id)
  },
  'throw-text': ({ done }) => {
    done(0)
    throw 'text'
  },
  'getter-then': ({ done }) => done(Object.defineProperty({ a: 1 }, 'then', { get: () => undefined })),
  async: async ({ done, later }) => (await later(), done({ a: 1 })),
  'async-throw': async ({ done, later, id }) => {
    await later()
    done(0)
    throw new Error(id)
  },
  promise: ({ done }) => Promise.resolve(done([1, 2])),
  rejected: ({ done, id }) => Promise.reject(done(new Error(id))),
  never: () => new Promise(() => {}),
  thenable: ({ note, done, id }) => ({
    then(resolve: (value: unknown) => void) {
      note(`${id} then`)
      resolve(done(3))
    },
  }),
  'thenable-rejects': ({ note, done, id, later }) => ({
    then(_: unknown, reject: (value: unknown) => void) {
      note(`${id} then`)
      void later().then(() => reject(done(id)))
    },
  }),
  'thenable-throws': ({ note, done, id }) => ({
    then() {
      note(`${id} then`)
      done(0)
      throw new Error(id)
    },
  }),
  'until-abort': ({ done, signal }) =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(done(signal.reason)))),
  'own-then': ({ done }) => Object.assign(Promise.resolve(done(4)), { mine: true }),
  subclass: ({ done }) => Object.setPrototypeOf(Promise.resolve(done(6)), Object.create(Promise.prototype)),
}

test('fields that are no methods stay unchanged', () => {
  const frozen = Object.freeze({ registerTool: () => 1 })
  replaceMethod(frozen, 'registerTool', () => 2)
  expect(frozen.registerTool()).toBe(1)
  const odd = { registerTool: 5 }
  replaceMethod(odd, 'registerTool', () => 2)
  expect(odd.registerTool).toBe(5)
})
