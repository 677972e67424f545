/**
 * A port that never answers: its process sleeps for good and its queue of connections is full, so what is sent there is dropped, as by a
 * router that has no way. Linux.
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
/** As long as this without an answer: the queue is full. */
const silentMs = 300
const maxFillers = 20

/** `port` 0: any. */
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
      // What has come by then is heard first: this process may have been kept waiting itself.
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
