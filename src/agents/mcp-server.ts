/**
 * The protocol: the official library answers requests of both of its generations, and this file says which tools there are. The library is
 * loaded at the first request to it: it takes 28 MB of memory and 0.1 s, which most processes never need.
 */
import type { Tool as ListedTool, Server } from '@modelcontextprotocol/server'
import { commonArguments, dataNotice, type ToolRunResult, tools } from './run-tool.ts'
import type { Tool } from './tool.ts'

export type { ListedTool }

type Schema = ListedTool['inputSchema']

function listed(tool: Tool): ListedTool {
  const { showAddresses, token } = commonArguments
  const isAct = 'plan' in tool
  const { required } = tool.input
  return {
    name: tool.name,
    title: tool.title,
    description: isAct ? `${tool.description} The first call returns a plan and a token, and changes nothing.` : tool.description,
    inputSchema: {
      type: 'object',
      properties: { ...tool.input.properties, showAddresses, ...(isAct ? { token } : {}) } as Schema['properties'],
      ...(required && required.length > 0 ? { required: [...required] } : {}),
    },
    annotations: { readOnlyHint: 'read' in tool, destructiveHint: isAct, idempotentHint: 'read' in tool, openWorldHint: false },
  }
}

/** The same for every key and at any time. */
export const listedTools: readonly ListedTool[] = tools.map(listed)

const instructions = `Postrider sends transactional email. These tools read its state, rehearse with test keys, and change single things after a plan. ${dataNotice}`

/** Lists and runs the tools: in this process, or at a service. */
export interface ToolSource {
  listTools(): Promise<readonly ListedTool[]>
  runTool(name: string, given: unknown): Promise<ToolRunResult>
}

export async function makeServer(version: string, source: ToolSource): Promise<Server> {
  const { Server } = await import('@modelcontextprotocol/server')
  const server = new Server({ name: 'postrider', title: 'Postrider', version }, { capabilities: { tools: {} }, instructions })
  server.setRequestHandler('tools/list', async () => ({ tools: [...(await source.listTools())] }))
  server.setRequestHandler('tools/call', async ({ params }) => {
    const { text, isError } = await source.runTool(params.name, params.arguments)
    return {
      content: [
        { type: 'text' as const, text: dataNotice },
        { type: 'text' as const, text },
      ],
      isError,
    }
  })
  return server
}

/**
 * Answers one request of either generation, in JSON. Each has a server of its own, which holds the rights of one caller and no state. There
 * are no subscriptions: the list of tools never changes.
 */
export async function answerRequest(request: Request, parsedBody: unknown, make: () => Promise<Server>): Promise<Response> {
  const { createMcpHandler, isLegacyRequest, WebStandardStreamableHTTPServerTransport } = await import('@modelcontextprotocol/server')
  if (!(await isLegacyRequest(request, parsedBody)))
    return createMcpHandler(make, { legacy: 'reject', maxSubscriptions: 0 }).fetch(request, { parsedBody })
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
  const server = await make()
  await server.connect(transport)
  try {
    return await transport.handleRequest(request, { parsedBody })
  } finally {
    await server.close()
  }
}
