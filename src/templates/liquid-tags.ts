/** The engine's tags, properties and operators with the bounds of `Budget`: each can do much work within one step. */
import { CaptureTag, CaseTag, Context, CycleTag, defaultOperators, type Emitter, evalToken, ForTag, toValue } from 'liquidjs'
import { type Budget, maxValueLength, refuseTemplate } from './liquid-bounds.ts'

const budgetOf = (context: Context) => context.memoryLimit as unknown as Budget

/** Collects output, values as Liquid prints them. It refuses before the text grows beyond the bound. */
export class BoundedEmitter implements Emitter {
  buffer = ''
  readonly #maxLength: number
  readonly #budget: Budget

  constructor(maxLength: number, budget: Budget) {
    this.#maxLength = maxLength
    this.#budget = budget
  }

  write(value: unknown): void {
    // A list item by item: its text may be far longer than the bound.
    if (Array.isArray(value)) for (const item of value) this.write(item)
    else if (typeof value === 'string') this.#add(value)
    else if (typeof value === 'object' && value !== null) this.#add(this.#json(value))
    else if (typeof value === 'number' || typeof value === 'boolean') this.#add(String(value))
  }

  #json(value: object): string {
    const text = JSON.stringify(value)
    this.#budget.make(2 * text.length)
    return text
  }

  #add(text: string): void {
    if (this.buffer.length + text.length > this.#maxLength) refuseTemplate(`the output has more than ${this.#maxLength} characters`)
    this.buffer += text
  }
}

/** A list as the name of a property is a long text. */
export class BoundedContext extends Context {
  override readProperty(object: never, key: never): unknown {
    if (typeof key === 'object' && key !== null) {
      budgetOf(this).check()
      budgetOf(this).measured(key)
    }
    return super.readProperty(object, key)
  }

  override spawn(scope: object = {}): Context {
    const { sync, globals, strictVariables, ownPropertyOnly, renderLimit, memoryLimit, liquid } = this as Context
    return new BoundedContext(scope, this.opts, { sync, globals, strictVariables, ownPropertyOnly }, {
      renderLimit,
      memoryLimit,
      liquid,
    } as unknown as { liquid: never })
  }
}

export class BoundedCapture extends CaptureTag {
  override *render(context: Context): Generator<unknown, void, string> {
    const emitter = new BoundedEmitter(maxValueLength, budgetOf(context))
    yield this.liquid.renderer.renderTemplates(this.templates, context, emitter)
    const scope = context.bottom() as Record<string, unknown>
    scope[this.variable] = emitter.buffer
  }
}

/** Counts the copies of the list, which loops within loops hold all at once. */
export class BoundedFor extends ForTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, string | void, never> {
    const modifiers = Object.keys(this.hash.hash).length
    const list: unknown = yield evalToken(this.collection, context)
    if (Array.isArray(list)) budgetOf(context).make(8 * modifiers * list.length)
    else if (typeof list === 'object' && list !== null) budgetOf(context).make((100 + 8 * modifiers) * Object.keys(list).length)
    return (yield* super.render(context, emitter) as Generator<unknown, string | void, never>) as string | void
  }
}

/** Every comparison counts, also those of a `when` with many values. */
export class BoundedCase extends CaseTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, void, never> {
    const { renderer } = this.liquid
    const target: unknown = toValue(yield this.value.value(context, context.opts.lenientIf))
    let isHit = false
    for (const { values, templates } of this.branches) {
      for (const token of values) {
        const value: unknown = yield evalToken(token, context, context.opts.lenientIf)
        if (!(yield context.opts.operators['==']?.(target, value, context))) continue
        isHit = true
        yield renderer.renderTemplates(templates, context, emitter)
        break
      }
    }
    if (!isHit) yield renderer.renderTemplates(this.elseTemplates, context, emitter)
  }
}

/** The engine keeps the name of each group. */
export class BoundedCycle extends CycleTag {
  override *render(context: Context, emitter: Emitter): Generator<unknown, unknown, unknown> {
    const { group } = this as unknown as { group?: never }
    budgetOf(context).make(2 * budgetOf(context).measured(yield evalToken(group, context)).text)
    return yield* super.render(context, emitter)
  }
}

type Operator = (left: unknown, right: unknown, context?: Context) => unknown

/** They compare lists item by item, and may be many in one tag. */
export const boundedOperators = Object.fromEntries(
  Object.entries(defaultOperators as unknown as Record<string, Operator>).map(([name, operator]) => {
    if (name === 'not') return [name, operator]
    const compare: Operator = (left, right, context) => {
      if (context) for (const one of [left, right]) if (Array.isArray(one)) budgetOf(context).measured(one)
      if (context) budgetOf(context).check()
      return operator(left, right, context)
    }
    return [name, compare]
  }),
)
