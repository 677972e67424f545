/** An SMTP client under full control of the test: sends octets, returns whole replies. TLS by STARTTLS or from the first octet. */
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'

export interface SmtpClient extends AsyncDisposable {
  /** Sends the octets unchanged. */
  write(octets: string | Buffer): void
  /** Resolves with the next reply, its lines joined by LF, or with `closed` when the connection has ended. */
  reply(): Promise<string>
  /** Sends a command and resolves with its reply. */
  say(command: string): Promise<string>
  startTls(): Promise<void>
  /** Resolves when the other side has closed. */
  readonly closed: Promise<void>
  destroy(): void
}

/** Only so that no test hangs. */
const replyWithinMs = 60_000

export async function smtpClient(port: number, tls?: 'implicit', localAddress = '127.0.0.1'): Promise<SmtpClient> {
  const to = { port, host: '127.0.0.1', localAddress }
  let socket: Socket | TLSSocket = tls ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to)
  let unread = ''
  let isClosed = false
  let look = () => {}
  let end = () => {}
  const closed = new Promise<void>((resolve) => {
    end = () => {
      isClosed = true
      look()
      resolve()
    }
  })
  const listen = () => {
    socket.on('data', (octets: Buffer) => {
      unread += octets.toString('latin1')
      look()
    })
    socket.on('error', () => {}).on('close', end)
  }
  listen()

  const whole = /^(?:\d{3}-[^\n]*\n)*\d{3}(?: [^\n]*)?\n/
  const reply = () =>
    new Promise<string>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no reply, but ${JSON.stringify(unread)}`)), replyWithinMs)
      look = () => {
        const found = whole.exec(unread)?.[0]
        if (found === undefined && !isClosed) return
        clearTimeout(timer)
        look = () => {}
        unread = unread.slice(found?.length ?? 0)
        resolve(found === undefined ? 'closed' : found.trimEnd().replaceAll('\r\n', '\n'))
      }
      look()
    })
  const client: SmtpClient = {
    write: (octets) => void socket.write(octets),
    reply,
    say(command) {
      socket.write(`${command}\r\n`)
      return reply()
    },
    async startTls() {
      const answer = await client.say('STARTTLS')
      if (!answer.startsWith('220')) throw new Error(answer)
      const plain = socket
      plain.removeAllListeners('data').removeAllListeners('close')
      socket = connectTls({ socket: plain, rejectUnauthorized: false })
      await new Promise((resolve, reject) => socket.once('secureConnect', () => resolve(undefined)).once('error', reject))
      listen()
    },
    closed,
    destroy: () => void socket.destroy(),
    [Symbol.asyncDispose]: async () => void socket.destroy(),
  }
  return client
}

/** Returns a client after TLS and AUTH on a submission port. */
export async function loggedIn(port: number, userName: string, key: string, tls?: 'implicit'): Promise<SmtpClient> {
  const client = await smtpClient(port, tls)
  await client.reply()
  if (!tls) {
    await client.say('EHLO client.test')
    await client.startTls()
  }
  await client.say('EHLO client.test')
  const answer = await client.say(`AUTH PLAIN ${plainToken(userName, key)}`)
  if (!answer.startsWith('235')) throw new Error(answer)
  return client
}

export const plainToken = (userName: string, key: string) => Buffer.from(`\0${userName}\0${key}`).toString('base64')
