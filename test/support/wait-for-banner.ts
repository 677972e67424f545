/** Waits until a mail server that was just started sends its greeting. */
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

const tries = 200
const everyMs = 50

/** Rejects with the text that `trouble` returns, or after ten seconds. */
export async function waitForBanner({ host, port }: { host: string; port: number }, trouble: () => string | undefined): Promise<void> {
  for (let tried = 0; !(await greets(host, port)); tried++) {
    const said = trouble() ?? (tried === tries ? `nobody greets on ${host} port ${port}` : undefined)
    if (said !== undefined) throw new Error(said)
    await wait(everyMs)
  }
}

const greets = (host: string, port: number) =>
  new Promise<boolean>((resolve) => {
    const socket = connect(port, host)
    socket.on('error', () => resolve(false))
    socket.on('close', () => resolve(false))
    socket.once('data', () => {
      resolve(true)
      socket.end('QUIT\r\n')
    })
  })
