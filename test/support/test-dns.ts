/**
 * An authoritative DNS server for tests on 127.0.0.1 (UDP and TCP on one port), with every misbehaviour that a test asks for. Written by
 * hand, because a library would not misbehave.
 */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import { message, questionFor, type RecordType, type RecordValue, rcodes, readQuery, record, types, u16 } from './dns-wire.ts'

/**
 * `truncated`: over UDP only. `truncated for good`: TCP hangs up as well. `forged ... first`: an NXDOMAIN that the client must not accept
 * precedes the true answer. `no EDNS`: a very old server. `EDNS dropped`: a server behind an old firewall. `pointer loop`: a record with a
 * name that points at itself.
 */
export type Misbehaviour =
  | 'NXDOMAIN'
  | 'SERVFAIL'
  | 'REFUSED'
  | 'silence'
  | 'no EDNS'
  | 'EDNS dropped'
  | 'truncated'
  | 'truncated for good'
  | 'forged id first'
  | 'forged question first'
  | 'forged source first'
  | 'pointer loop'
  | 'garbage'

export interface Question {
  name: string
  type: string
  over: 'udp' | 'tcp'
}

export type Zones = Record<string, Partial<Record<RecordType, readonly RecordValue[]>>>

export interface TestDns extends AsyncDisposable {
  /** `127.0.0.1:port`, the format of POSTRIDER_DNS. */
  readonly address: string
  /** Every question so far, in order. */
  readonly questions: readonly Question[]
  /** Sets the records of a name and type. The name may begin with `*.`; an empty list removes them. */
  set(name: string, type: RecordType, values: readonly RecordValue[], ttlS?: number): void
  /** Every question for the name fails this way, or only those of one type. */
  fail(name: string, how: Misbehaviour, type?: RecordType): void
  /** From now on, answers from the zone count as validated by DNSSEC for clients that ask for it. `unsign` ends it. */
  sign(zone: string): void
  unsign(zone: string): void
  /** Ends the misbehaviour of a name. */
  mend(name: string): void
  close(): Promise<void>
}

interface Records {
  values: readonly RecordValue[]
  ttlS: number
}

const maxChain = 64

/** `bufferOctets`: size of the buffer for unread queries. */
export async function startTestDns(zones: Zones = {}, bufferOctets?: number): Promise<TestDns> {
  const names = new Map<string, Map<RecordType, Records>>()
  const failures = new Map<string, Misbehaviour>()
  const signed = new Set<string>()
  const questions: Question[] = []
  const sockets = new Set<Socket>()

  /** Every parent of a known name; rebuilt after a change. */
  let parents: Set<string> | undefined

  const set: TestDns['set'] = (name, type, values, ttlS = 300) => {
    const records = names.get(plain(name)) ?? new Map<RecordType, Records>()
    if (values.length > 0) records.set(type, { values, ttlS })
    else records.delete(type)
    if (records.size > 0) names.set(plain(name), records)
    else names.delete(plain(name))
    parents = undefined
  }
  for (const [name, records] of Object.entries(zones)) {
    for (const [type, values] of Object.entries(records)) set(name, type as RecordType, values)
  }

  /** The name's own records, or those of its nearest wildcard (RFC 4592, simplified). */
  const recordsOf = (name: string) => {
    const own = names.get(name)
    if (own) return own
    const labels = name.split('.')
    for (let depth = 1; depth < labels.length; depth++) {
      const wild = names.get(`*.${labels.slice(depth).join('.')}`)
      if (wild) return wild
    }
    return undefined
  }
  const parentsOf = (name: string) => name.split('.').map((_, depth, labels) => labels.slice(depth + 1).join('.'))
  const exists = (name: string) => {
    parents ??= new Set([...names.keys()].flatMap(parentsOf))
    return recordsOf(name) !== undefined || parents.has(name)
  }

  const isSigned = (name: string) => [...signed].some((zone) => name === zone || name.endsWith(`.${zone}`))

  /** The true answer, with CNAMEs followed as a recursive resolver does. */
  const answerTo = ({ name, type }: Question): { rcode: number; answers: Buffer[]; authentic: boolean } => {
    const answers: Buffer[] = []
    let at = name
    let authentic = isSigned(at)
    for (let step = 0; step < maxChain; step++) {
      const records = recordsOf(at)
      if (!records) return { rcode: exists(at) ? rcodes.NOERROR : rcodes.NXDOMAIN, answers, authentic }
      const alias = type === 'CNAME' ? undefined : records.get('CNAME')
      const found = alias ? undefined : records.get(type as RecordType)
      if (found) for (const value of found.values) answers.push(record(at, type as RecordType, value, found.ttlS))
      if (!alias) return { rcode: rcodes.NOERROR, answers, authentic }
      const target = String(alias.values[0])
      answers.push(record(at, 'CNAME', target, alias.ttlS))
      at = plain(target)
      authentic &&= isSigned(at)
    }
    return { rcode: rcodes.SERVFAIL, answers, authentic: false }
  }

  /** Returns the packets sent for a query, in order; an empty list means silence. */
  const respond = (query: Buffer, over: Question['over']): { octets: Buffer; isForeign?: true }[] | 'hang up' => {
    const asked = readQuery(query)
    if (!asked) return []
    const question: Question = { name: asked.name, type: asked.type, over }
    questions.push(question)
    const { rcode, answers, authentic } = answerTo(question)
    const truth = { octets: message(asked, rcode, answers, { authentic: authentic && asked.wantsDnssec }) }
    const cut = { octets: message(asked, rcodes.NOERROR, [], { truncated: true }) }
    const forgery = (header = asked) => ({ octets: message(header, rcodes.NXDOMAIN, []) })
    const how = failures.get(`${asked.name} ${asked.type}`) ?? failures.get(asked.name)
    switch (how) {
      case 'NXDOMAIN':
      case 'SERVFAIL':
      case 'REFUSED':
        return [{ octets: message(asked, rcodes[how], []) }]
      case 'silence':
        return []
      case 'no EDNS':
        return [asked.hasEdns ? { octets: message({ ...asked, question: Buffer.alloc(0) }, rcodes.FORMERR, []) } : truth]
      case 'EDNS dropped':
        return asked.hasEdns ? [] : [truth]
      case 'truncated':
        return [over === 'udp' ? cut : truth]
      case 'truncated for good':
        return over === 'udp' ? [cut] : 'hang up'
      case 'forged id first':
        return [forgery({ ...asked, id: asked.id ^ 1 }), truth]
      case 'forged question first':
        return [forgery({ ...asked, question: questionFor('other.test', types.A) }), truth]
      case 'forged source first':
        return [{ ...forgery(), isForeign: true }, truth]
      case 'pointer loop': {
        const loop = Buffer.from([0xc0, 12 + asked.question.length, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1])
        return [{ octets: message(asked, rcodes.NOERROR, [loop]) }]
      }
      case 'garbage':
        return [{ octets: Buffer.concat([query.subarray(0, 2), Buffer.alloc(40, 0xff)]) }]
      case undefined:
        return [over === 'udp' && truth.octets.length > asked.maxOctets ? cut : truth]
    }
  }

  const udp = createSocket({ type: 'udp4', ...(bufferOctets === undefined ? {} : { recvBufferSize: bufferOctets }) })
  const elsewhere = createSocket('udp4')
  udp.on('message', (query, from: RemoteInfo) => {
    const pieces = respond(query, 'udp')
    if (pieces === 'hang up') return
    for (const { octets, isForeign } of pieces) (isForeign ? elsewhere : udp).send(octets, from.port, from.address)
  })
  const tcp = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
    let unread: Buffer = Buffer.alloc(0)
    socket.on('data', (octets: Buffer) => {
      unread = Buffer.concat([unread, octets])
      while (unread.length >= 2 && unread.length >= 2 + unread.readUInt16BE(0)) {
        const end = 2 + unread.readUInt16BE(0)
        const pieces = respond(unread.subarray(2, end), 'tcp')
        unread = unread.subarray(end)
        if (pieces === 'hang up') return void socket.destroy()
        for (const { octets: piece } of pieces) socket.write(Buffer.concat([u16(piece.length), piece]))
      }
    })
  })
  await new Promise<void>((resolve) => elsewhere.bind(0, '127.0.0.1', resolve))
  const port = await bindBoth(tcp, udp)

  const close = async () => {
    for (const socket of sockets) socket.destroy()
    await Promise.all([tcp, udp, elsewhere].map((one) => new Promise<void>((resolve) => one.close(() => resolve()))))
  }
  return {
    address: `127.0.0.1:${port}`,
    questions,
    set,
    fail: (name, how, type) => void failures.set(type ? `${plain(name)} ${type}` : plain(name), how),
    sign: (zone) => void signed.add(plain(zone)),
    unsign: (zone) => void signed.delete(plain(zone)),
    mend(name) {
      for (const key of failures.keys()) if (key.split(' ')[0] === plain(name)) failures.delete(key)
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

const plain = (name: string) => name.toLowerCase().replace(/\.$/, '')

/** Binds one free port for both. A free TCP port may be in use for UDP, so a few are tried. */
async function bindBoth(tcp: Server, udp: UdpSocket): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    await new Promise<void>((resolve, reject) => tcp.once('error', reject).listen(0, '127.0.0.1', resolve))
    const address = tcp.address()
    const port = typeof address === 'object' && address ? address.port : 0
    try {
      await new Promise<void>((resolve, reject) => udp.once('error', reject).bind(port, '127.0.0.1', resolve))
      return port
    } catch (error) {
      await new Promise((resolve) => tcp.close(resolve))
      if (attempt === 10) throw error
    }
  }
}
