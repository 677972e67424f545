/**
 * The outside of a soak, in its own process: an SMTP server that defers a share of the recipients, and readers who open a share of the
 * delivered mail by loading its tracking pixel a few seconds later. Counts, and keeps a bounded list of the pixels to load.
 */
import { Agent, request } from 'node:http'
import { startSinkServer } from './smtp-sink-server.ts'

/** Of the recipients, one in so many is deferred. */
const deferEvery = 20
/** Of the delivered messages, one in so many is opened. */
const openEvery = 4
const openAfterMs = 3000
const maxWaitingOpens = 20_000
const openTimeoutMs = 30_000
/** In quoted-printable, soft line breaks and `=3D` are decoded first. */
const pixel = /https?:\/\/([\w.-]+)(\/o\/[\w-]+)/

export interface SoakCounts {
  /** Accepted messages. */
  messages: number
  deferred: number
  opened: number
  /** Opens without a response of status 200, or without a pixel in the message. */
  failedOpens: number
  /** Opens not made yet. */
  waitingOpens: number
}

const counts: SoakCounts = { messages: 0, deferred: 0, opened: 0, failedOpens: 0, waitingOpens: 0 }
const agent = new Agent({ keepAlive: true, maxSockets: 16 })
let openAt: number | undefined
let recipients = 0

function open(host: string, path: string): void {
  const end = (isOpened: boolean) => {
    counts.waitingOpens--
    if (isOpened) counts.opened++
    else counts.failedOpens++
  }
  const headers = { host, 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0' }
  const opening = request({ agent, port: openAt, host: '127.0.0.1', path, headers, timeout: openTimeoutMs }, (response) => {
    response.resume()
    response.once('end', () => end(response.statusCode === 200))
  })
  opening.once('timeout', () => opening.destroy(new Error('no response')))
  opening.once('error', () => end(false))
  opening.end()
}

startSinkServer(
  {
    accepted: () => counts.messages++,
    recipient() {
      if (++recipients % deferEvery !== 0) return undefined
      counts.deferred++
      return '450 4.2.1 mailbox busy, try again later'
    },
    wantsContent: () => openAt !== undefined && counts.messages % openEvery === 0 && counts.waitingOpens < maxWaitingOpens,
    content(octets) {
      const [, host, path] = pixel.exec(octets.toString('latin1').replaceAll('=\r\n', '').replaceAll('=3D', '=')) ?? []
      if (host === undefined || path === undefined) {
        counts.failedOpens++
        return
      }
      counts.waitingOpens++
      setTimeout(() => open(host, path), openAfterMs)
    },
  },
  (port) => process.send?.({ port }),
)
process.on('message', (question: { openAt: number } | 'count') => {
  if (question === 'count') process.send?.(counts)
  else openAt = question.openAt
})
process.on('disconnect', () => process.exit(0))
