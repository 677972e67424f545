/** The tools of a service, called over HTTP with a key: `postrider mcp` offers them on standard input and output. */
import type { Clock } from '#base'
import type { ListedTool, ToolSource } from './mcp-server.ts'
import type { ToolRunResult } from './run-tool.ts'

/** Longer than a service takes for its slowest tool. */
const answerWithinMs = 40_000
const maxAnswerLength = 200_000

interface Answered {
  result?: { tools?: ListedTool[]; content?: { text?: unknown }[]; isError?: unknown }
  error?: { code?: unknown; message?: unknown }
}

interface RemoteService {
  /** The service's own, without `/mcp`. */
  url: string
  key: string
  /** The name of this program. */
  agent: string
  clock: Clock
}

export function openRemoteTools({ url, key, agent, clock }: RemoteService): ToolSource {
  let id = 0
  const ask = async (method: string, params: object): Promise<NonNullable<Answered['result']>> => {
    id += 1
    const late = new AbortController()
    const cancel = clock.after(answerWithinMs, () => late.abort(new Error(`${url}/mcp did not answer within ${answerWithinMs / 1000} s`)))
    try {
      return await answerTo({ jsonrpc: '2.0', id, method, params }, late.signal)
    } finally {
      cancel()
    }
  }
  const answerTo = async (message: object, signal: AbortSignal): Promise<NonNullable<Answered['result']>> => {
    const response = await fetch(`${url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'user-agent': agent,
      },
      body: JSON.stringify(message),
      signal,
    })
    const { result, error } = readAnswer(await response.text(), response.status)
    if (result !== undefined) return result
    const { code = response.status, message: reason = 'no result' } = error ?? {}
    throw new Error(`${url}/mcp: ${wordOf(code)}: ${wordOf(reason)}`)
  }
  return {
    async listTools() {
      const { tools } = await ask('tools/list', {})
      if (!Array.isArray(tools)) throw new Error(`${url}/mcp returned no list of tools`)
      return tools
    },
    async runTool(name, given): Promise<ToolRunResult> {
      const { content, isError } = await ask('tools/call', { name, arguments: given ?? {} })
      // The first part is the notice, which this process adds itself.
      const text = content?.[1]?.text
      if (typeof text !== 'string') throw new Error(`${url}/mcp returned no result`)
      return { text, isError: isError === true }
    },
  }
}

const wordOf = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? String(value) : 'unknown')

/** A refusal outside the protocol, such as that of an unknown key, has the envelope of /v1 with a code and a message. */
function readAnswer(text: string, status: number): Answered {
  if (text.length > maxAnswerLength) throw new Error(`an answer of ${text.length} characters is longer than any tool's`)
  try {
    const answered: unknown = JSON.parse(text)
    if (typeof answered === 'object' && answered !== null) return answered as Answered
  } catch {
    // A proxy's page.
  }
  throw new Error(`the service returned HTTP ${status} without JSON`)
}
