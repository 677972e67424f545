import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#base'
import { openRemoteTools } from './remote-tools.ts'

async function toolsOf(answer: RequestListener) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return openRemoteTools({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key: 'svc_test_x',
    agent: 'test',
    clock: systemClock,
  })
}

test.each<[string, RequestListener, RegExp]>([
  ["a proxy's page", (_, response) => void response.writeHead(502).end('<html>'), /HTTP 502 without JSON/],
  ['a number', (_, response) => void response.end('7'), /HTTP 200 without JSON/],
  ['a huge answer', (_, response) => void response.end('x'.repeat(200_001)), /longer than any tool's/],
  [
    'a refusal of the service',
    (_, response) => void response.writeHead(429).end('{"success":false,"error":{"code":"rate_limit_exceeded","message":"too fast"}}'),
    /rate_limit_exceeded: too fast/,
  ],
  ['another result', (_, response) => void response.end('{"result":{"content":[{"text":"x"}]}}'), /returned no/],
])('%s is an error with its reason', async (_, answer, reason) => {
  const tools = await toolsOf(answer)
  await expect(tools.listTools()).rejects.toThrow(reason)
  await expect(tools.runTool('queue', {})).rejects.toThrow(reason)
})

test('the key goes to the service as bearer, with the arguments of the call', async () => {
  const seen: unknown[] = []
  const tools = await toolsOf((request, response) => {
    const pieces: Buffer[] = []
    request
      .on('data', (piece: Buffer) => pieces.push(piece))
      .on('end', () => {
        seen.push(request.url, request.headers.authorization, JSON.parse(Buffer.concat(pieces).toString()))
        response.end('{"result":{"content":[{"text":"notice"},{"text":"{}"}],"isError":true}}')
      })
  })
  expect(await tools.runTool('queue', { tenantId: 'a' })).toEqual({ text: '{}', isError: true })
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'queue', arguments: { tenantId: 'a' } } }
  expect(seen).toEqual(['/mcp', 'Bearer svc_test_x', message])
})
