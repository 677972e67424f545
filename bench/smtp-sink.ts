/** A fast SMTP sink in its own process: accepts every message and reports the count to its parent. */
import { createServer } from 'node:net'

const end = Buffer.from('\r\n.\r\n')
let messages = 0

const server = createServer({ noDelay: true }, (socket) => {
  /** An incomplete line, or the last octets of content: the end may be split over packets. */
  let rest: Buffer = Buffer.alloc(0)
  let inData = false
  socket.on('error', () => undefined)
  socket.write('220 sink.test ESMTP\r\n')
  socket.on('data', (packet) => {
    let input = rest.length === 0 ? packet : Buffer.concat([rest, packet])
    let replies = ''
    for (;;) {
      if (inData) {
        const at = input.indexOf(end)
        if (at < 0) {
          input = input.subarray(Math.max(0, input.length - end.length + 1))
          break
        }
        input = input.subarray(at + end.length)
        inData = false
        messages++
        replies += '250 2.0.0 Ok\r\n'
        continue
      }
      const at = input.indexOf('\r\n')
      if (at < 0) break
      const verb = input.toString('latin1', 0, Math.min(at, 4)).toUpperCase()
      input = input.subarray(at + 2)
      if (verb === 'EHLO') replies += '250-sink.test\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SMTPUTF8\r\n'
      else if (verb === 'DATA') {
        replies += '354 go\r\n'
        inData = true
      } else if (verb === 'QUIT') {
        socket.end(`${replies}221 bye\r\n`)
        return
      } else replies += '250 Ok\r\n'
    }
    rest = input
    if (replies !== '') socket.write(replies)
  })
})

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }))
process.on('message', (question) => {
  if (question === 'count') process.send?.({ messages })
  if (question === 'reset') messages = 0
})
process.on('disconnect', () => process.exit(0))
