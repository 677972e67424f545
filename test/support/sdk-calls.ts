/** Records which methods of a vendor's SDK a test calls, and whether each call was answered or refused. */

export type CallEnd = 'answered' | 'refused'

export interface SdkCall {
  sdk: string
  /** As in the list of served methods. */
  method: string
  end: CallEnd
}

/** The calls of the running test, each once. */
let calls: SdkCall[] = []

/** Forgets the calls so far, and returns the list to which later ones are added. */
export function beginSdkCalls(): readonly SdkCall[] {
  calls = []
  return calls
}

/** Records a call. */
export function noteSdkCall(sdk: string, method: string, end: CallEnd): void {
  if (!calls.some((one) => one.sdk === sdk && one.method === method && one.end === end)) calls.push({ sdk, method, end })
}

/** Records the calls that a script in another language reports. */
export function noteSdkCalls(sdk: string, made: readonly (readonly [method: string, end: CallEnd])[]): void {
  for (const [method, end] of made) noteSdkCall(sdk, method, end)
}

interface Recording {
  /** For SDKs that return their errors; absent: a refusal is thrown. */
  isRefusal?: (answer: unknown) => boolean
  /** The name in the list of served methods; absent: the path, such as `emails.send`. */
  nameOf?: (path: string, args: readonly unknown[]) => string
}

/** The same client, whose calls are recorded, but not those that the SDK makes inside. */
export function recorded<T extends object>(sdk: string, client: T, { isRefusal, nameOf }: Recording = {}): T {
  const call = (path: string, args: unknown[], run: () => unknown): unknown => {
    const note = (end: CallEnd) => noteSdkCall(sdk, nameOf?.(path, args) ?? path, end)
    const answered = (answer: unknown) => {
      note(isRefusal?.(answer) ? 'refused' : 'answered')
      return answer
    }
    const failed = (error: unknown) => {
      note('refused')
      throw error
    }
    let answer: unknown
    try {
      answer = run()
    } catch (error) {
      failed(error)
    }
    return answer instanceof Promise ? answer.then(answered, failed) : answered(answer)
  }
  const wrap = (target: object, path: string): object =>
    new Proxy(target, {
      get(one, name) {
        const value: unknown = Reflect.get(one, name, one)
        if (typeof name === 'symbol' || value === null) return value
        const own = path === '' ? name : `${path}.${name}`
        if (typeof value === 'object') return wrap(value, own)
        return typeof value === 'function' ? (...args: unknown[]) => call(own, args, () => Reflect.apply(value, one, args)) : value
      },
    })
  return wrap(client, '') as T
}
