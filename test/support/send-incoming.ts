/** Sends messages to the port for incoming mail, as another mail server does. */
import { type SmtpClient, smtpClient } from './smtp-client.ts'

/** A client after the greeting and EHLO. */
export async function greetedClient(port: number, name = 'mx.example.net', localAddress?: string): Promise<SmtpClient> {
  const client = await smtpClient(port, undefined, localAddress)
  const greeting = await client.reply()
  if (!greeting.startsWith('220')) throw new Error(greeting)
  await client.say(`EHLO ${name}`)
  return client
}

const dotStuffed = (octets: Buffer): Buffer => Buffer.from(octets.toString('latin1').replace(/^\./gm, '..'), 'latin1')

/** One transaction; returns the first reply that is an error, or the last one. `octets`: with CRLF line ends, without the final dot. */
export async function sendIncoming(
  client: SmtpClient,
  { from = 'reader@example.net', to, octets }: { from?: string; to: readonly string[]; octets: string | Buffer },
): Promise<string> {
  const commands = [`MAIL FROM:<${from}>`, ...to.map((one) => `RCPT TO:<${one}>`), 'DATA']
  for (const command of commands) {
    const reply = await client.say(command)
    if (!/^[23]/.test(reply)) {
      if (reply !== 'closed') await client.say('RSET')
      return reply
    }
  }
  client.write(Buffer.concat([dotStuffed(Buffer.from(octets)), Buffer.from('\r\n.\r\n')]))
  return client.reply()
}
