/** A fast webhook receiver in its own process: accepts every request and reports the count to its parent. */
import { createServer } from 'node:http'

let messages = 0

const server = createServer((request, response) => {
  request.resume()
  request.on('end', () => {
    messages++
    response.writeHead(200, { 'content-length': 2 }).end('ok')
  })
})

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }))
process.on('message', (question) => {
  if (question === 'count') process.send?.({ messages })
  if (question === 'reset') messages = 0
})
process.on('disconnect', () => process.exit(0))
