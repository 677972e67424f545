// Sends one message with Postal's own Node client, then reads it: port, key, sender, recipient. Prints both answers as JSON.
const https = require('node:https')
const [port, key, sender, recipient] = process.argv.slice(2)
// The client takes a host only.
https.globalAgent.defaultPort = Number(port)
const { Client, SendMessage } = require('@atech/postal')

const client = new Client('localhost', key)
const message = new SendMessage(client)
message.to(recipient)
message.from(sender)
message.subject('From the client')
message.plainBody('Text')
message.attach('note.txt', 'text/plain', 'a note')
message
  .send()
  .then((result) => {
    const sent = result.recipients()[recipient]
    return client.makeRequest('messages', 'message', { id: sent.id(), _expansions: true }).then((shown) => ({ id: sent.id(), shown }))
  })
  .then(
    (answer) => console.log(JSON.stringify(answer)),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
