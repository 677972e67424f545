/** The official client at a service, over HTTP and over `postrider mcp`, and the results of tools as data. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

export interface ToolAnswer {
  isError: boolean
  notice: string
  text: string
  data: Record<string, unknown>
}

export interface Agent extends AsyncDisposable {
  tools(): Promise<string>
  call(name: string, given?: object): Promise<ToolAnswer>
}

/** `modern`: the generation of the protocol without a handshake. */
type Generation = 'legacy' | 'modern'

const clientOf = (generation: Generation) =>
  new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: generation === 'modern' ? { pin: '2026-07-28' } : 'legacy' } })

function agentOf(client: Client): Agent {
  return {
    tools: async () => JSON.stringify((await client.listTools()).tools),
    async call(name, given = {}) {
      const { content, isError } = await client.callTool({ name, arguments: { ...given } })
      const [notice = '', text = ''] = (content as { type: string; text?: string }[]).map((one) => one.text)
      return { isError: isError === true, notice, text, data: JSON.parse(text) as Record<string, unknown> }
    },
    [Symbol.asyncDispose]: () => client.close(),
  }
}

export async function overHttp(port: number, key: string, generation: Generation = 'legacy'): Promise<Agent> {
  const client = clientOf(generation)
  const requestInit = { headers: { authorization: `Bearer ${key}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), { requestInit }))
  return agentOf(client)
}

export async function overStdio(port: number, key: string, generation: Generation = 'legacy'): Promise<Agent> {
  const client = clientOf(generation)
  const env = { PATH: process.env.PATH ?? '', POSTRIDER_URL: `http://127.0.0.1:${port}`, POSTRIDER_KEY: key }
  await client.connect(new StdioClientTransport({ command: process.execPath, args: ['bin/postrider.js', 'mcp'], env }))
  return agentOf(client)
}
