/**
 * Minimal HTTP client over kept-alive connections. The load generator shares the cores with the measured program, and a request through an
 * agent of node:http takes as long as a large part of the program's response.
 */
import { connect } from 'node:net'

export interface BenchRequest {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string | number>
  body?: Buffer
  /** The expected status. */
  status: number
}

/** Caches the bytes of each request, because the same objects are sent again and again. */
const written = new WeakMap<BenchRequest, Buffer>()

function octetsOf(request: BenchRequest): Buffer {
  const known = written.get(request)
  if (known) return known
  const fields = Object.entries({ host: '127.0.0.1', ...request.headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  const octets = Buffer.concat([
    Buffer.from(`${request.method} ${request.path} HTTP/1.1\r\n${fields.join('')}\r\n`),
    request.body ?? Buffer.alloc(0),
  ])
  written.set(request, octets)
  return octets
}

const maxHead = 16_384
const contentLength = /\r\ncontent-length: *(\d+)/i

export interface Asking {
  /** Resolves when the response is as expected, and throws otherwise. One request at a time. */
  ask(request: BenchRequest): Promise<void>
  close(): void
}

/** A connection to this machine; responses need a Content-Length. */
export function openAsking(port: number): Asking {
  let waiting: { request: BenchRequest; resolve: () => void; reject: (reason: Error) => void } | undefined
  /** Bytes left of the current response; -1: its head is incomplete. */
  let bodyLeft = -1
  let head = ''
  const fail = (reason: Error) => {
    waiting?.reject(reason)
    waiting = undefined
    socket.destroy()
  }
  const read = (octets: Uint8Array, length: number): boolean => {
    if (!waiting) return true
    if (bodyLeft >= 0) bodyLeft -= length
    else {
      head += Buffer.from(octets.buffer, octets.byteOffset, length).toString('latin1')
      const headEnd = head.indexOf('\r\n\r\n')
      if (headEnd < 0 && head.length < maxHead) return true
      const { request } = waiting
      const status = Number(head.slice(9, 12))
      const announced = contentLength.exec(head)?.[1]
      if (status !== request.status || announced === undefined) {
        fail(new Error(`${request.method} ${request.path} was answered: ${head.slice(0, 200)}`))
        return true
      }
      bodyLeft = Number(announced) - (head.length - headEnd - 4)
    }
    if (bodyLeft > 0) return true
    bodyLeft = -1
    head = ''
    const { resolve } = waiting
    waiting = undefined
    resolve()
    return true
  }
  const socket = connect({
    host: '127.0.0.1',
    port,
    noDelay: true,
    onread: { buffer: Buffer.alloc(65_536), callback: (length, buffer) => read(buffer, length) },
  })
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))
  return {
    ask(request) {
      return new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(new Error('the connection is closed'))
        waiting = { request, resolve, reject }
        socket.write(octetsOf(request))
      })
    },
    close: () => socket.destroy(),
  }
}
