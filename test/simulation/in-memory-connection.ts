/** A connection without a network. The client's end is a socket for the SMTP client, the peer's end two functions. Data arrives at once. */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import type { Life } from './virtual-time.ts'

export interface PeerEnd {
  said(octets: Buffer): void
  hungUp(): void
}

export interface Wire {
  /** For `dial`. */
  socket: Socket
  /** The connection is established. */
  open(peer: PeerEnd): void
  /** The connection fails. */
  refuse(code: string): void
  say(text: string): void
  /** The peer closes the connection. */
  hangUp(): void
  readonly isOpen: boolean
}

export function openWire(life: Life): Wire {
  let peer: PeerEnd | undefined
  let isOpen = false
  const gone = () => {
    if (!isOpen) return
    isOpen = false
    peer?.hungUp()
  }
  const stream = new Duplex({
    read() {},
    write(octets: Buffer, _encoding, done) {
      if (isOpen && !life.isOver) peer?.said(octets)
      done()
    },
    destroy(error, done) {
      gone()
      done(error)
    },
  })
  life.onEnd(gone)
  const socket = Object.assign(stream, { setNoDelay: () => stream, setKeepAlive: () => stream, setTimeout: () => stream })
  return {
    socket: socket as unknown as Socket,
    get isOpen() {
      return isOpen
    },
    open(end) {
      peer = end
      life.hear(() => {
        if (stream.destroyed) return
        isOpen = true
        stream.emit('connect')
      })
      // A frozen process does not notice, but the kernel establishes the connection all the same.
      if (life.isFrozen) isOpen = true
    },
    refuse: (code) =>
      life.hear(() => void (stream.destroyed || stream.destroy(Object.assign(new Error(code), { code, syscall: 'connect' })))),
    say: (text) => life.hear(() => void (stream.destroyed || stream.push(Buffer.from(text)))),
    hangUp() {
      gone()
      life.hear(() => void (stream.destroyed || stream.push(null)))
    },
  }
}
