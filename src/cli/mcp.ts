/** `postrider mcp`: the tools for agents on standard input and output, at a service that runs. */
import { baseOf } from './api.ts'
import { type Command, text, UsageError } from './command-definition.ts'

export const mcpCommand: Command = {
  name: 'mcp',
  summary: 'serve the tools for agents (MCP) on standard input and output',
  help: `postrider mcp --url URL --key KEY

Serves the tools of a running service to an agent that starts this command and speaks the Model Context Protocol with it. The service runs
each tool with the permissions of the key, and records each call in its audit log. A test key can rehearse and read, and accepts no new live email.
--url, --key  the service and its API key (or the environment variables POSTRIDER_URL and POSTRIDER_KEY, which keep the key out of the
              process list)

An agent that speaks HTTP needs no command: it connects to URL/mcp with the key as bearer.

Example: POSTRIDER_URL=https://mail.example.com POSTRIDER_KEY=svc_test_… postrider mcp`,
  options: { url: { type: 'string' }, key: { type: 'string' } },
  async run(given, { environment, version, clock }) {
    const url = text(given, 'url') ?? environment.POSTRIDER_URL
    const key = text(given, 'key') ?? environment.POSTRIDER_KEY
    if (!url) throw new UsageError('--url is required (or set POSTRIDER_URL)')
    if (!key) throw new UsageError('--key is required (or set POSTRIDER_KEY)')
    const { serveOnStdio } = await import('#agents')
    await serveOnStdio({ url: baseOf(url).replace(/\/v1$/, ''), key, version, clock })
  },
}
