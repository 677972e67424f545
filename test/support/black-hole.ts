/**
 * A port that never answers. Its process sleeps forever and its connection queue is full, so the kernel drops new connections, as a router
 * without a route does. Linux only.
 */
import { spawn } from 'node:child_process'
import { connect, type Socket } from 'node:net'

export interface BlackHole extends AsyncDisposable {
  readonly port: number
}

const program = `
  const server = require('node:net').createServer().listen({ host: process.argv[1], port: Number(process.argv[2]), backlog: 1 }, () => {
    require('node:fs').writeSync(1, String(server.address().port))
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  })`
/** No answer within this time means that the queue is full. */
const silentMs = 300
const maxFillers = 20

/** `port` 0 chooses any free port. */
export async function startBlackHole(host: string, port = 0): Promise<BlackHole> {
  const child = spawn(process.execPath, ['-e', program, host, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] })
  const listening = await new Promise<number>((resolve, reject) => {
    child.once('exit', () => reject(new Error(`nobody could listen at ${host} port ${port}`)))
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  const fillers: Socket[] = []
  const isTaken = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect({ host, port: listening }).on('error', () => resolve(true))
      fillers.push(socket)
      // Events that are already pending run first: this process may have been delayed itself.
      const timer = setTimeout(() => setImmediate(() => resolve(false)), silentMs)
      socket.once('connect', () => {
        clearTimeout(timer)
        resolve(true)
      })
    })
  while (await isTaken()) if (fillers.length > maxFillers) throw new Error('the queue of connections is never full')
  return {
    port: listening,
    async [Symbol.asyncDispose]() {
      for (const socket of fillers) socket.destroy()
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    },
  }
}
