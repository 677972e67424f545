/** A real receiver of webhooks on 127.0.0.1, over http or https. It answers as the test requires and keeps the received octets. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { testCertificate } from './certificate.ts'

export interface Received {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: Buffer
}

export interface Receiver extends AsyncDisposable {
  readonly port: number
  /** With the address 127.0.0.1. */
  readonly url: string
  readonly received: readonly Received[]
  readonly connections: () => number
  /** Drops the kept requests. */
  forget(): void
  answer: (response: ServerResponse, request: Received) => void
}

export async function startReceiver(scheme: 'http' | 'https' = 'http'): Promise<Receiver> {
  const received: Received[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const serve = (request: IncomingMessage, response: ServerResponse) => {
    const pieces: Buffer[] = []
    request.on('error', () => undefined)
    response.on('error', () => undefined)
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      const one = { method, path: url, headers, body: Buffer.concat(pieces) }
      received.push(one)
      receiver.answer(response, one)
    })
  }
  const server = scheme === 'http' ? createServer(serve) : createTlsServer(testCertificate, serve)
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const receiver: Receiver = {
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    received,
    connections: () => connections,
    forget: () => void received.splice(0),
    answer: (response) => response.end('thanks'),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return receiver
}
