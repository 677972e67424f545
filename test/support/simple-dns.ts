/** A DNS server for tests on 127.0.0.1: MX, A and TXT answers from a table, NXDOMAIN for unknown names. UDP only. */
import { createSocket } from 'node:dgram'

export interface MxZone {
  /** Hosts by domain, all with preference 10. */
  mx?: Record<string, string[]>
  /** IPv4 addresses by host. */
  a?: Record<string, string[]>
  txt?: Record<string, string>
}

export interface MxDns extends AsyncDisposable {
  /** `ip:port`, the format of POSTRIDER_DNS. */
  readonly address: string
}

const types = { a: 1, mx: 15, txt: 16 }
const ttlSeconds = 300
const nxdomain = 3

export async function startMxDns(zone: MxZone): Promise<MxDns> {
  const socket = createSocket('udp4')
  socket.on('message', (query, from) => socket.send(answerOf(query, zone), from.port, from.address))
  await new Promise<void>((resolve, reject) => socket.once('error', reject).bind(0, '127.0.0.1', resolve))
  return {
    address: `127.0.0.1:${socket.address().port}`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => socket.close(() => resolve())),
  }
}

/** RFC 1035 section 4.1: the header, the question as received, the answers. */
function answerOf(query: Buffer, zone: MxZone): Buffer {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = query.subarray(12, at + 5)
  const name = labels.join('.').toLowerCase()
  const type = query.readUInt16BE(at + 1)

  const datas = datasOf(name, type, zone)
  const isKnown = [zone.mx, zone.a, zone.txt].some((table) => table && Object.hasOwn(table, name))
  const head = Buffer.alloc(12)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(0x8580 | (isKnown ? 0 : nxdomain), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(datas.length, 6)
  const answers = datas.map((data) => {
    const record = Buffer.alloc(12)
    record.writeUInt16BE(0xc00c, 0)
    record.writeUInt16BE(type, 2)
    record.writeUInt16BE(1, 4)
    record.writeUInt32BE(ttlSeconds, 6)
    record.writeUInt16BE(data.length, 10)
    return Buffer.concat([record, data])
  })
  return Buffer.concat([head, question, ...answers])
}

function datasOf(name: string, type: number, zone: MxZone): Buffer[] {
  if (type === types.a) return (zone.a?.[name] ?? []).map((address) => Buffer.from(address.split('.').map(Number)))
  if (type === types.mx) return (zone.mx?.[name] ?? []).map((host) => Buffer.concat([Buffer.from([0, 10]), nameOctets(host)]))
  const text = type === types.txt ? zone.txt?.[name] : undefined
  if (text === undefined) return []
  const strings = text.match(/.{1,255}/gs) ?? []
  return [Buffer.concat(strings.map((one) => Buffer.concat([Buffer.from([one.length]), Buffer.from(one, 'latin1')])))]
}

const nameOctets = (name: string) =>
  Buffer.concat([...name.split('.').map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)])), Buffer.from([0])])
