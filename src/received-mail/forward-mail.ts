/**
 * The copy of a received message that is forwarded: the octets as received, below an ARC set, a trace field and the names of the routes. A
 * copy that comes back to one of these routes is a loop.
 */
import { dateText, readFields } from '#mail'

const loopField = 'X-Postrider-Route'

/** Ids of the routes that have forwarded the message before. */
export function passedRoutes(octets: Buffer): ReadonlySet<string> {
  const fields = readFields(octets) ?? []
  return new Set(fields.filter(({ name }) => name.toLowerCase() === loopField.toLowerCase()).map(({ value }) => value.trim()))
}

interface ForwardFacts {
  hostname: string
  /** IP address of the server that sent the message. */
  client: string
  /** The received message. */
  id: string
  routes: readonly string[]
  /** ARC set; '' without one. */
  seal: string
  atMs: number
}

/**
 * RFC 5321 section 4.4 asks for the trace field, which also counts the hop. Undefined: with these fields the header would be too large to be
 * read at delivery.
 */
export function forwardedCopy(octets: Buffer, { hostname, client, id, routes, seal, atMs }: ForwardFacts): Buffer | undefined {
  const literal = client.includes(':') ? `IPv6:${client}` : client
  const trace = `Received: from [${literal}] by ${hostname} (Postrider) with ESMTP id ${id};\r\n\t${dateText(atMs)}\r\n`
  const marks = [...new Set(routes)].map((route) => `${loopField}: ${route}\r\n`)
  const copy = Buffer.concat([Buffer.from(seal + trace + marks.join('')), octets])
  return readFields(copy) ? copy : undefined
}
