/** Responses of external name servers, and the policy published by a domain's web server. */
import { systemClock } from '#base'
import { checkDomain } from '#domains'
import {
  type DnsAnswer,
  daneComplaint,
  fetchStsPolicy,
  findRoute,
  findStsId,
  findTlsReportUris,
  isListedMx,
  openGuard,
  type Resolver,
  usableTlsa,
} from '#net'
import { looksLikeKey, parseKeyRecord } from '../../../../src/domains/dkim-record.ts'
import { countLookups, isSpf, parseSpf } from '../../../../src/domains/spf.ts'
import { answersIn, decodeAnswer, isName } from '../../../../src/net/dns-query.ts'
import { decodeMessage, textOfData } from '../../../../src/net/dns-wire.ts'
import { readSignedAnswer } from '../../../../src/net/tsig.ts'
import { authenticate } from '../../../../src/received-mail/authenticate.ts'
import { type Reader, reader } from '../reader.ts'

const maxAnswer = 65_535
const maxPolicy = 65_536

const found = <T>(value: T): DnsAnswer<T> => ({ kind: 'found', value })
const resolver = (given: Partial<Resolver>): Resolver => {
  const none = async (): Promise<{ kind: 'none' }> => ({ kind: 'none' })
  return { mx: none, addresses: none, txt: none, cname: none, ptr: none, ...given }
}
/** The resolver returns at most this many records. */
const linesOf = (octets: Buffer) => octets.toString('latin1').split('\n').slice(0, 100)

const head = '\0\x01\x81\x80\0\x01\xff\xff\0\0\0\0'
const question = '\x01b\x07example\0\0\x0f\0\x01'
const record = (type: string, data: string, name = '\xc0\x0c') =>
  `${name}\0${type}\0\x01\0\0\0\x3c\0${String.fromCharCode(data.length)}${data}`
/** Most inputs count 65,535 answers, which is refused at once; they get as many as they can hold. */
const isCounted = (octets: Buffer) => octets.length < 17 || octets.readUInt16BE(6) !== 0xffff
function counted(given: Buffer): Buffer {
  const octets = Buffer.from(given)
  octets.writeUInt16BE(Math.floor((octets.length - 17) / 11), 6)
  return octets
}
const label = `\x3f${'a'.repeat(63)}`

export const dnsReaders: Reader[] = [
  reader({
    name: 'DNS answer',
    longest: maxAnswer,
    encoding: 'latin1',
    reads: ['src/net/dns-query.ts decodeAnswer', 'src/net/dns-query.ts answersIn', 'src/net/dns-query.ts isName'],
    frames: [
      [head + question, ''],
      [`${head}\x01b\x07example\0\0\x10\0\x01`, ''],
      [head, ''],
    ],
    units: [
      record('\x0f', '\0\x0a\xc0\x0c'),
      record('\x0f', '\0\x0a\xc0\x1d'),
      record('\x05', '\x01c\xc0\x0c'),
      record('\x05', '\x01b\xc0\x0e', '\x01c\xc0\x0c'),
      record('\x10', '\x03abc'),
      record('\x10', '\0\0\0\0\0\0\0\0'),
      record('\x01', '\x7f\0\0\x01'),
      record('\x34', '\x03\x01\x01\0'),
      record('\x34', `\x03\x01\x01${'a'.repeat(32)}`),
      record('\x29', '\0\x0a\0\0'),
      record('\x2e', `\0\x0f\x08\x02${'\0'.repeat(14)}\xc0\x0c`),
      label,
      `${label}${label}${label}`,
      '\x01a',
      '\0',
      '\xc0\x0c',
      '\xc0\x1d',
      '\xc0',
      '\xff',
    ],
    nests: [['\x01a', '\0']],
    read(given) {
      const octets = isCounted(given) ? given : counted(given)
      const packet = decodeAnswer(octets)
      const name = packet.questions?.[0]?.name ?? 'b.example'
      isName(name)
      return (['MX', 'TXT', 'A', 'AAAA', 'TLSA'] as const).map((type) => answersIn(packet, name, type))
    },
  }),
  reader({
    name: 'signed DNS answer',
    longest: maxAnswer,
    encoding: 'latin1',
    reads: ['src/net/dns-wire.ts decodeMessage', 'src/net/tsig.ts readSignedAnswer'],
    frames: [
      [head + question, ''],
      [head + question, record('\xfa', `\x0bhmac-sha256\0${'\0'.repeat(16)}`)],
      [head, ''],
    ],
    units: [
      record('\x0f', '\0\x0a\xc0\x0c'),
      record('\x05', '\x01c\xc0\x0c'),
      record('\x05', '\x01b\xc0\x0e', '\x01c\xc0\x0c'),
      record('\x10', '\x03abc'),
      record('\x10', '\0\0\0\0\0\0\0\0'),
      record('\x01', '\x7f\0\0\x01'),
      record('\xfa', `\x0bhmac-sha256\0${'\0'.repeat(16)}`),
      label,
      `${label}${label}${label}`,
      '\x01a',
      '\0',
      '\xc0\x0c',
      '\xc0\x1d',
      '\xc0',
      '\xff',
    ],
    nests: [['\x01a', '\0']],
    read(given) {
      const octets = isCounted(given) ? given : counted(given)
      const key = { name: 'b.example', algorithm: 'hmac-sha256' as const, secret: Buffer.alloc(32) }
      readSignedAnswer(octets, { id: 0, key, mac: Buffer.alloc(32), nowMs: 0 })
      return decodeMessage(octets).answers.map(({ type, data }) => textOfData(type, data))
    },
  }),
  reader({
    name: 'route by MX',
    longest: maxAnswer,
    reads: ['src/net/mail-route.ts findRoute'],
    units: ['mx{i}.b.example\n', 'mx.b.example.\n', '\n', '.', 'a.', '-', 'xn--a', '192.0.2.1\n', 'co.uk', 'example', '_', '\0'],
    read: (octets) =>
      findRoute(
        'b.example',
        resolver({
          mx: async () => found(linesOf(octets).map((exchange, at) => ({ exchange, priority: at % 3 }))),
          addresses: async () => found(['192.0.2.1']),
        }),
        { ownNames: ['mail.example.com'], random: () => 0.5, guard: openGuard([]) },
      ),
  }),
  reader({
    name: 'TXT of MTA-STS',
    longest: maxAnswer,
    reads: ['src/net/mta-sts.ts findStsId'],
    words: ['src/net/mta-sts.ts'],
    frames: [
      ['v=STSv1; ', ''],
      ['v=STSv1; id=', ';'],
      ['', ''],
    ],
    units: ['v=STSv1;', ' ', '\t', ';', 'id', 'id=', '; id = ', 'a', '=', '\n', '; id=a '],
    read: (octets) => findStsId('b.example', resolver({ txt: async () => found(linesOf(octets)) })),
  }),
  reader({
    name: 'TXT of TLS reports',
    longest: maxAnswer,
    reads: ['src/net/tls-report-record.ts findTlsReportUris'],
    frames: [
      ['v=TLSRPTv1; ', ''],
      ['v=TLSRPTv1; rua=', ''],
      ['', ''],
    ],
    units: [
      'v=TLSRPTv1;',
      'rua=',
      'mailto:a@b.example',
      'mailto:a{i}@b.example,',
      'https://a{i}.example/',
      ',',
      ';',
      ' ',
      '\t',
      '!',
      '%2c',
      '\n',
    ],
    read: (octets) => findTlsReportUris('b.example', resolver({ txt: async () => found(linesOf(octets)) })),
  }),
  reader({
    name: 'policy of MTA-STS',
    longest: maxPolicy,
    reads: ['src/net/mta-sts.ts fetchStsPolicy', 'src/net/mta-sts.ts isListedMx'],
    frames: [
      ['version: STSv1\nmode: enforce\nmax_age: 86400\n', ''],
      ['version: STSv1\nmode: enforce\nmax_age: 86400\nmx: ', '\n'],
      ['', '\nversion: STSv1'],
    ],
    units: [
      'mx: mx{i}.b.example\n',
      'mx: *.b.example\n',
      'mx: ',
      'mode: enforce\n',
      'max_age: ',
      ':',
      ' ',
      '\t',
      '\n',
      '\r\n',
      '\r',
      'a.',
      '*.',
      '-',
      '_',
      'a{i}: b\n',
      'a',
    ],
    async read(octets) {
      const policy = await fetchStsPolicy('b.example', 443, async () => ({
        statusCode: 200,
        contentType: 'text/plain',
        body: octets.toString(),
        isWhole: true,
        error: null,
      }))
      return typeof policy === 'string' ? policy : isListedMx(policy, 'mx.b.example')
    },
  }),
  reader({
    name: 'TXT of a sending domain',
    longest: maxAnswer,
    reads: ['src/domains/spf.ts parseSpf', 'src/domains/dkim-record.ts parseKeyRecord', 'src/domains/verify-records.ts checkDomain'],
    frames: [
      ['v=spf1 ', ' -all'],
      ['v=DKIM1; p=', ''],
      ['v=DKIM1; ', '; p=AA'],
      ['v=DMARC1; ', ''],
      ['', ''],
    ],
    units: [
      'include:a{i}.example ',
      'include:spf.mail.example.com ',
      'a ',
      'mx/24 ',
      'ip4:192.0.2.1 ',
      'redirect=a.example ',
      'exists:%{i}.a ',
      '-all ',
      '~all',
      ' ',
      '+',
      '?',
      ':',
      '/',
      '=',
      'a-',
      'a.',
      'v=spf1 ',
      'v=DKIM1',
      'v =',
      'p=',
      ';',
      '; p',
      'k=rsa',
      'h=sha256:',
      's=*',
      't=s',
      '\t',
      '\\;',
      'v=DMARC1; p=none',
      'rua=mailto:a@b',
      '\n',
      'a{i}=b; ',
    ],
    async read(octets) {
      const lines = linesOf(octets)
      for (const text of lines) {
        if (isSpf(text)) await countLookups(parseSpf(text), async () => text)
        if (looksLikeKey(text)) parseKeyRecord(text)
      }
      const facts = {
        name: 'b.example',
        selector: 's',
        rsaPublic: 'AA',
        ed25519Public: 'AA',
        spfStatus: null,
        dkimStatus: null,
        dkimEd25519Status: null,
        returnPathStatus: null,
      }
      return checkDomain(facts, {
        resolver: resolver({
          txt: async () => found(lines),
          cname: async () => found(lines),
          mx: async () => found(lines.map((exchange) => ({ exchange, priority: 1 }))),
        }),
        clock: systemClock,
        hostname: 'mail.example.com',
      })
    },
  }),
  reader({
    name: 'TXT of a sender',
    longest: maxAnswer,
    reads: ['src/received-mail/authenticate.ts authenticate'],
    frames: [
      ['v=spf1 ', ' -all'],
      ['v=spf1 redirect=x.', '_'],
      ['v=spf1 exists:', '.a'],
      ['v=spf1 a:x.', '_/24'],
      ['v=spf1 -all exp=', '.a'],
      ['v=DMARC1; p=none; ', ''],
      ['v=DMARC1; p=none; rua=', ''],
      ['', ''],
    ],
    units: [
      'redirect=x.%{l}_ ',
      'a=%{S} ',
      'exp=%{h}.a ',
      'ip6:1::/1 ',
      'include:a{i}.example ',
      '%{l}',
      '%{h}',
      '%{S}',
      '%{l1r-.+}',
      '%{',
      '}',
      '%',
      'a',
      '.',
      '/1',
      ' ',
      '\t',
      '\n',
      ';',
      '=',
      'a{i}=b; ',
      'mailto:a@b,',
      '!1',
    ],
    read(octets) {
      const lines = linesOf(octets)
      const given = { resolver: resolver({ txt: async () => found(lines) }), clock: systemClock, hostname: 'mail.example.com' }
      const long = {
        client: '192.0.2.1',
        greeting: 'a'.repeat(255),
        sender: `${'a'.repeat(64)}@b.example`,
        from: 'a@b.example',
        signatures: [],
      }
      return authenticate(given, long)
    },
  }),
  reader({
    name: 'TLSA records',
    longest: maxAnswer,
    encoding: 'latin1',
    reads: ['src/net/tlsa.ts daneComplaint', 'src/net/tlsa.ts usableTlsa'],
    units: [`\x03\x01\x01${'a'.repeat(32)}\n`, `\x02\0\0\x30\x82\n`, `\x02\x01\0\x30\x59\x30\x13\n`, '\x30\x80', '\xff', '\0', '\n', 'a'],
    read(octets) {
      const records = octets
        .toString('latin1')
        .split('\n')
        .slice(0, 100)
        .map((text) => {
          const data = Buffer.from(text, 'latin1')
          return { usage: data[0] ?? 0, selector: data[1] ?? 0, matchingType: data[2] ?? 0, data: data.subarray(3) }
        })
      return daneComplaint(usableTlsa(records), [], ['mx.b.example'], 0)
    },
  }),
]
