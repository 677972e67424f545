/**
 * Tools for agents over the Model Context Protocol: questions about mail and the installation, rehearsals with test keys, and actions in two
 * steps.
 * Owns: no tables. Uses: base, bounces, db, members, credentials, delivery, doctor. Used by: http, cli.
 * Promises: a call has the rights of its key and is in the audit log before it is answered, except a question or rehearsal that was recorded
 * within the last minute; an action needs the token of its plan, which is bound to one key and exact arguments, expires, and works once in all
 * processes; text from outside stands only below `untrusted`, as one bounded line without markup; addresses are masked unless asked for; answers
 * have at most 24,000 characters.
 */
import { answerRequest, listedTools, makeServer } from './mcp-server.ts'
import { openRunTool, type ToolDeps } from './run-tool.ts'
import type { AgentCaller } from './tool.ts'

export { serveOnStdio } from './serve-stdio.ts'
export type { AgentCaller, ApiAnswer, ApiCall, Right } from './tool.ts'

export interface Agents {
  /** Answers one request of the protocol, whose body was parsed already. */
  answer(request: Request, body: unknown, caller: AgentCaller): Promise<Response>
}

export function openAgents(deps: ToolDeps & { version: string }): Agents {
  const runTool = openRunTool(deps)
  return {
    answer(request, body, caller) {
      const runForCaller = (name: string, given: unknown) => runTool(name, given, caller)
      return answerRequest(request, body, () => makeServer(deps.version, { listTools: async () => listedTools, runTool: runForCaller }))
    },
  }
}
