/** `postrider sendCommand`: sends one email through the running service's API and follows it until it is final. */
import { pause } from '#base'
import { type Command, jsonOption, needed, text, UsageError } from './command-definition.ts'

const finalStates = ['sent', 'hardfail', 'bounced', 'held']
const askEveryMs = 200
const followForMs = 60_000
const answerWithinMs = 30_000
const maxRequests = 400

interface Reply {
  success: boolean
  data?: { id?: string; status?: string; deliveries?: { status: string; timestampIso: string; details: string; output: string }[] }
  error?: { code: string; message: string; suggestion: string }
}

export const sendCommand: Command = {
  name: 'send',
  summary: 'send one email and print its attempts',
  help: `postrider send --from A --to B [--subject S] [--text T] [--html H] [--key K] [--url URL] [--json]

Sends one email through the running service and prints each attempt until the final status, for up to one minute.
--from     sender; its domain must be verified, except simulator.test with a test key
--to       recipient
--subject  subject (default: Hello from Postrider)
--text     plain text body; --html: HTML body
--key      API key (default: the environment variable POSTRIDER_API_KEY)
--url      URL of the service (default: http://127.0.0.1:$PORT)`,
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    subject: { type: 'string' },
    text: { type: 'string' },
    html: { type: 'string' },
    key: { type: 'string' },
    url: { type: 'string' },
    ...jsonOption,
  },
  async run(given, deps) {
    const key = text(given, 'key') ?? deps.environment.POSTRIDER_API_KEY
    if (!key) throw new UsageError('--key is required (or set POSTRIDER_API_KEY)')
    const base = `${(text(given, 'url') ?? `http://127.0.0.1:${deps.environment.PORT ?? '3025'}`).replace(/\/$/, '')}/v1`
    const late = new AbortController()
    let asked = 0
    const ask = async (method: string, path: string, body?: object): Promise<Reply> => {
      if (++asked > maxRequests) throw new UsageError('other requests have used up the rate limit of the key')
      const cancel = deps.clock.after(answerWithinMs, () => late.abort(new Error(`no response within ${answerWithinMs / 1000} s`)))
      const answer = await fetch(base + path, {
        method,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        signal: late.signal,
        ...(body ? { body: JSON.stringify(body) } : {}),
      }).catch((error: Error) => {
        throw new UsageError(
          `no response from the service at ${base}: ${(error.cause as Error | undefined)?.message ?? error.message}. Start it with: npm start`,
        )
      })
      const reply = (await answer.json()) as Reply
      cancel()
      // Another program may use the key at the same time.
      if (reply.error?.code === 'rate_limit_exceeded') {
        await pause(deps.clock, Math.max(1, Number(answer.headers.get('retry-after')) || 1) * 1000)
        return ask(method, path, body)
      }
      if (!reply.success) throw new UsageError(`${reply.error?.code}: ${reply.error?.message}. ${reply.error?.suggestion}`)
      return reply
    }
    const message = {
      from: needed(given, 'from'),
      to: [needed(given, 'to')],
      subject: text(given, 'subject') ?? 'Hello from Postrider',
      text: text(given, 'text') ?? 'It works.',
      html: text(given, 'html') ?? null,
    }
    const id = (await ask('POST', '/emails', message)).data?.id as string
    if (!given.options.json) deps.print(`${id} pending`)
    let shown = 0
    const untilMs = deps.clock.monotonicMs() + followForMs
    for (;;) {
      const { data } = await ask('GET', `/emails/${id}/deliveries`)
      const deliveries = data?.deliveries ?? []
      if (!given.options.json)
        for (const one of deliveries.slice(shown))
          deps.print(`${one.timestampIso} ${one.status}: ${one.details}${one.output ? `\n  ${one.output}` : ''}`)
      shown = deliveries.length
      const status = data?.status ?? 'pending'
      if (finalStates.includes(status) || deps.clock.monotonicMs() > untilMs) {
        if (given.options.json) deps.print(JSON.stringify({ id, status, deliveries }))
        return
      }
      await pause(deps.clock, askEveryMs)
    }
  },
}
