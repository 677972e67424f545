/** Postfix's smtp-sink as a peer: one file for each message, with the received commands in front. */
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

export interface SinkMessage {
  recipients: string[]
  octets: Buffer
}

export interface Sink extends AsyncDisposable {
  /** The number of messages received so far. */
  count(): Promise<number>
  messages(): AsyncGenerator<SinkMessage>
}

export async function startSink(host: string, port: number): Promise<Sink> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-sink-'))
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : []
  const child = spawn('/usr/sbin/smtp-sink', [...user, '-R', folder, '-d', '%M.', `${host}:${port}`, '100'], { stdio: 'ignore' })
  const files = async () => (await readdir(folder)).filter((name) => !name.startsWith('.'))
  for (let tries = 0; !(await answers(host, port)); tries++) {
    if (tries > 100) throw new Error('smtp-sink does not listen')
    await wait(50)
  }
  return {
    count: async () => (await files()).length,
    async *messages() {
      for (const name of await files()) yield readDump(await readFile(join(folder, name)))
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const answers = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host, () => resolve(true))
    socket.on('error', () => resolve(false)).once('data', () => socket.end('QUIT\r\n'))
  })

/** smtp-sink writes its facts as X- fields and a Received field in front, adds a line at the end, and writes LF for CRLF. */
function readDump(dump: Buffer): SinkMessage {
  const text = dump.toString('latin1')
  const recipients = [...text.slice(0, 20_000).matchAll(/^X-Rcpt-Args: <([^>]*)>/gm)].map((found) => found[1] ?? '')
  const start = /^(?:[A-Za-z-]+: .*\n)*?Received: from .*\n(?:\t.*\n)*/.exec(text.slice(0, 20_000))?.[0].length ?? 0
  const message = text.slice(start, -1)
  return { recipients, octets: Buffer.from(message.replaceAll('\n', '\r\n'), 'latin1') }
}
