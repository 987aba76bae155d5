/** Records the calls of declarative tools: forms that an agent fills in, and that it or the visitor submits. */
import { replaceMethod, type ModelContext, type PageWindow } from './model-context.ts'
import { isPromise, whenSettled, type ToolCall } from './wrap-tool.ts'

export interface FormCalls {
  follow(context: ModelContext): void
  /** Ends calls whose form was submitted by navigation. */
  left(): void
}

interface AgentSubmit extends Event {
  agentInvoked?: boolean
}

type ToolEvent = Event & { toolName?: unknown }
type StartForm = (name: string, input: unknown, extraMetadata: object) => ToolCall

const pairMs = 50 // between two events of the same call
const invalidInput = { error: { name: 'InvalidInput' } }

/**
 * A call begins with `toolactivated` and ends with what `respondWith` was given, else with the submission. It also
 * ends when the agent cancels it, the form is reset, or a value is not valid.
 */
export function formCalls(page: PageWindow, start: StartForm): FormCalls {
  const active = new Map<string, { call: ToolCall; startMs: number }>()
  const submitted = new Map<Event, ToolCall>()
  /** When a call was submitted or refused: with `toolautosubmit` this is before `toolactivated`. */
  const ended = new Map<string, { ms: number; isInvalid: boolean }>()

  const formOf = (name: unknown): HTMLFormElement | undefined =>
    [...page.document.forms].find((form) => form.getAttribute('toolname') === name)
  const begin = (form: HTMLFormElement, name: string): ToolCall => {
    const call = start(name, valuesOf(form), { declarative: true })
    active.set(name, { call, startMs: page.performance.now() })
    return call
  }
  const finish = (name: string | null, ...end: Parameters<ToolCall['end']>): void => {
    if (name === null) return
    active.get(name)?.call.end(...end)
    active.delete(name)
  }
  const activated = ({ toolName }: ToolEvent): void => {
    const form = formOf(toolName)
    if (typeof toolName !== 'string' || form === undefined) return // functions report their own calls
    const isRecent = (ms: number | undefined) => ms !== undefined && page.performance.now() - ms < pairMs
    if (isRecent(active.get(toolName)?.startMs)) return // told twice
    const last = ended.get(toolName)
    ended.delete(toolName)
    if (isRecent(last?.ms) && last?.isInvalid === false) return
    if (active.has(toolName)) finish(toolName, 'error', { error: { name: 'NoAnswer' } })
    begin(form, toolName)
    if (isRecent(last?.ms) || !isFilledIn(form)) finish(toolName, 'error', invalidInput)
  }
  const canceled = ({ toolName }: ToolEvent): void => finish(String(toolName), 'aborted')
  const answerless = (event: Event): void => {
    submitted.get(event)?.end('success')
    submitted.delete(event)
  }
  const onSubmit = (event: AgentSubmit): void => {
    const form = event.target as HTMLFormElement | null
    const name = form?.getAttribute?.('toolname')
    if (event.agentInvoked !== true || !form || !name) return
    const previousCall = active.get(name)
    if (previousCall === undefined) ended.set(name, { ms: page.performance.now(), isInvalid: false })
    const call = previousCall?.call ?? begin(form, name)
    active.delete(name)
    submitted.set(event, call)
    // The page's own listeners run before this: one of them may answer.
    page.setTimeout(() => answerless(event), 0)
  }
  const onReset = ({ target }: Event): void => finish(nameOf(target), 'aborted')
  const onInvalid = ({ target }: Event): void => {
    const name = nameOf((target as HTMLInputElement | null)?.form)
    // A form that an agent fills in and submits at once is activated after this.
    if (name !== null && !active.has(name)) ended.set(name, { ms: page.performance.now(), isInvalid: true })
    finish(name, 'error', invalidInput)
  }

  page.addEventListener('submit', onSubmit, true)
  page.addEventListener('reset', onReset, true)
  page.addEventListener('invalid', onInvalid, true)
  watchAnswers(page, submitted)
  const listen = (target: Pick<ModelContext, 'addEventListener'>): void => {
    target.addEventListener?.('toolactivated', activated)
    for (const name of ['toolcancel', 'toolcanceled']) target.addEventListener?.(name, canceled)
  }
  listen(page as Pick<ModelContext, 'addEventListener'>)
  return {
    follow: listen,
    left: () => [...submitted.keys()].forEach(answerless),
  }
}

function watchAnswers({ SubmitEvent }: PageWindow, submitted: Map<Event, ToolCall>): void {
  if (SubmitEvent === undefined) return
  replaceMethod(SubmitEvent.prototype, 'respondWith', (respondWith, self, args) => {
    const result = Reflect.apply(respondWith, self, args) // throws as without us
    const call = submitted.get(self as Event)
    submitted.delete(self as Event)
    if (call !== undefined) endWith(call, args[0])
    return result
  })
}

function endWith(call: ToolCall, answer: unknown): void {
  if (!isPromise(answer)) return call.end('success', { result: answer })
  whenSettled(
    answer,
    (result) => call.end('success', { result }),
    (error) => call.end('error', { error }),
  )
}

function nameOf(target: unknown): string | null {
  return (target as Partial<HTMLFormElement> | null | undefined)?.getAttribute?.('toolname') ?? null
}

/** False when the browser refused the values of the agent. */
function isFilledIn(form: HTMLFormElement): boolean {
  try {
    return form.matches(':tool-form-active')
  } catch {
    return true // a browser without this selector
  }
}

/** Read only if the recorder wants content. */
function valuesOf(form: HTMLFormElement): { toJSON(): object } {
  return { toJSON: () => Object.fromEntries(new FormData(form)) }
}
