/** Misbehaviours between the connection and MAIL: TCP, greeting, EHLO, STARTTLS. */
import assert from 'node:assert/strict'
import type { FakeMxOptions } from '../../support/fake-mx.ts'
import { dripping, hangUp, type Misbehaviour, pouring, silent } from '../../support/misbehaving-peer.ts'
import { expiredCertificate, otherCertificate } from './certificates.ts'
import { type Attempts, type PeerOf, type Row, untilGivenUp } from './row-type.ts'

const greeting = (name: string, text: string, comesTo: Row['comesTo'], more: Partial<Row> = {}): Row => ({
  name,
  peer: { rude: { connect: text } },
  comesTo,
  ...more,
})
const twoHosts = ({ domain, ip, deadIp }: { domain: string; ip: string; deadIp: string }, first = deadIp) => ({
  [domain]: { MX: [`5 first.${domain}`, `10 mx.${domain}`] },
  [`first.${domain}`]: { A: [first] },
  [`mx.${domain}`]: { A: [ip] },
})
const hello = (...lines: string[]) =>
  ['rude.test', ...lines].map((line, index) => `250${index === lines.length ? ' ' : '-'}${line}\r\n`).join('')
/**
 * Results of the emails that wait while another email's connection is refused: they were not offered, so the reply does not apply to them.
 */
const notOffered = (said: string): readonly Attempts[] => {
  const own = untilGivenUp(said)
  const others = untilGivenUp('connection_error')
  return [others, [own[0] ?? '', others[1] ?? ''], [others[0] ?? '', own[1] ?? '']]
}
const tls = (options: FakeMxOptions): PeerOf => ({ fake: { starttls: true, ...options } })
const startTls = (rude: Misbehaviour): PeerOf => ({ rude: { EHLO: hello('STARTTLS', 'PIPELINING'), ...rude } })

const greetings: Row[] = [
  { name: 'no server listens', peer: 'nobody', comesTo: untilGivenUp('connection_error') },
  { name: 'no server listens at the first of two MX hosts', dns: twoHosts, comesTo: ['sent'] },
  {
    name: 'a black hole',
    dns: ({ domain, blackHoleIp }) => ({ [domain]: { MX: [`10 mx.${domain}`] }, [`mx.${domain}`]: { A: [blackHoleIp] } }),
    peer: 'nobody',
    comesTo: untilGivenUp('connection_error'),
    waits: ['connectMs'],
  },
  {
    name: 'a black hole at the first of two MX hosts',
    dns: (place) => twoHosts(place, place.blackHoleIp),
    comesTo: ['sent'],
    waits: ['connectMs'],
  },
  {
    name: 'a reset right after the connection is accepted',
    peer: { rude: { connect: (socket) => void socket.resetAndDestroy() } },
    comesTo: untilGivenUp('connection_error'),
  },
  {
    name: 'silence instead of a greeting',
    peer: { rude: { connect: silent } },
    comesTo: untilGivenUp('connection_error'),
    waits: ['greetingMs'],
  },
  {
    name: 'endless greeting, octet by octet',
    peer: { rude: { connect: dripping(`220 ${'x'.repeat(2000)}`, 50) } },
    comesTo: untilGivenUp('connection_error'),
    waits: ['greetingMs'],
  },
  { name: 'connection closed before the greeting', peer: { rude: { connect: hangUp } }, comesTo: untilGivenUp('connection_error') },
  greeting('a greeting of 20 lines', `${'220-hello\r\n'.repeat(19)}220 hello\r\n`, ['sent']),
  greeting('421 as greeting', '421 4.3.2 too many connections\r\n', ['softfail temporarily_unavailable 4.3.2']),
  greeting('450 as greeting', '450 4.3.2 not now\r\n', untilGivenUp('temporarily_unavailable 4.3.2'), {
    amongMany: notOffered('temporarily_unavailable 4.3.2'),
  }),
  greeting('554 as greeting', '554 5.7.1 your address is on our block list\r\n', ['softfail spam_block 5.7.1'], { othersWait: true }),
  greeting('521 as greeting, not about the sender', '521 5.3.2 no mail service here\r\n', untilGivenUp('policy_violation 5.3.2'), {
    amongMany: notOffered('policy_violation 5.3.2'),
  }),
  greeting('450 as greeting, for a block list', '450 4.7.1 your address is on our block list\r\n', ['softfail spam_block 4.7.1']),
  { name: '554 as greeting of the first of two MX hosts', dns: (place) => twoHosts(place, place.unwelcomeIp), comesTo: ['sent'] },
  { name: '421 as greeting of the first of two MX hosts', dns: (place) => twoHosts(place, place.busyIp), comesTo: ['sent'] },
  greeting('250 as greeting', '250 hello\r\n', untilGivenUp('protocol_error')),
  greeting('HTTP at the mail port', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', untilGivenUp('protocol_error')),
  greeting('SSH at the mail port', 'SSH-2.0-OpenSSH_9.9\r\n', untilGivenUp('protocol_error')),
  greeting('a TLS hello at the mail port', '\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00\n', untilGivenUp('protocol_error')),
  greeting('a greeting line of 1 MB', `220 ${'x'.repeat(1_048_576)}\r\n`, untilGivenUp('protocol_error')),
  {
    name: 'endless greeting lines, 10 GB',
    peer: { rude: { connect: pouring('220-flood\r\n') } },
    comesTo: untilGivenUp('protocol_error'),
  },
]

const hellos: Row[] = [
  { name: 'EHLO refused, HELO accepted', peer: { rude: { EHLO: '502 5.5.1 what?\r\n' } }, comesTo: ['sent'] },
  {
    name: 'EHLO and HELO refused',
    peer: { rude: { EHLO: '550 5.7.1 your name is not welcome\r\n', HELO: '550 5.7.1 your name is not welcome\r\n' } },
    comesTo: ['softfail policy_violation 5.7.1'],
    othersWait: true,
  },
  {
    name: '501 to EHLO and HELO',
    peer: { rude: { EHLO: '501 5.5.2 what?\r\n', HELO: '501 5.5.2 what?\r\n' } },
    comesTo: untilGivenUp('protocol_error 5.5.2'),
    amongMany: notOffered('protocol_error 5.5.2'),
  },
  {
    name: '501 to EHLO and HELO of the first connection',
    peer: { fake: { script: ({ stage, session }) => (stage === 'ehlo' && session === 1 ? '501 5.5.2 what?' : undefined) } },
    comesTo: ['softfail protocol_error 5.5.2', 'sent'],
    amongMany: [['softfail connection_error', 'sent'], ['sent']],
    maxAmongMany: 1,
  },
  { name: '421 to EHLO', peer: { rude: { EHLO: '421 4.3.2 closing\r\n' } }, comesTo: ['softfail temporarily_unavailable 4.3.2'] },
  { name: 'connection closed at EHLO', peer: { rude: { EHLO: hangUp } }, comesTo: untilGivenUp('connection_error') },
  { name: 'silence at EHLO', peer: { rude: { EHLO: silent } }, comesTo: untilGivenUp('connection_error'), waits: ['commandMs'] },
  {
    name: 'invalid, repeated and unknown extensions',
    peer: { rude: { EHLO: hello('\x01\x02', '8BITMIME', '8BITMIME', 'SIZE', 'SIZE nonsense', 'XCLIENT NAME', 'ETRN', '=', '') } },
    comesTo: ['sent'],
  },
  {
    name: '10,000 extensions',
    peer: { rude: { EHLO: hello(...Array<string>(10_000).fill('X-A')) } },
    comesTo: untilGivenUp('protocol_error'),
  },
  { name: 'SIZE 0', peer: { fake: { extensions: ['SIZE 0', 'PIPELINING'] } }, comesTo: ['sent'] },
  { name: 'SIZE 2⁶³', peer: { fake: { extensions: ['SIZE 9223372036854775808', 'PIPELINING'] } }, comesTo: ['sent'] },
  {
    name: 'SIZE 100, smaller than the message',
    peer: { fake: { extensions: ['SIZE 100', 'PIPELINING'] } },
    comesTo: ['hardfail message_too_large 5.3.4'],
    taken: 0,
  },
  {
    name: 'no 8BITMIME for a message with 8-bit text',
    peer: { fake: { extensions: ['PIPELINING'] } },
    message: { text: 'Grüße' },
    comesTo: ['sent'],
    look: ([message]) => assert.match(message?.content ?? '', /^[\x00-\x7f]+$/),
  },
  {
    name: 'no SMTPUTF8 for an address that needs it',
    to: ['jürgen'],
    peer: { fake: { extensions: ['PIPELINING', '8BITMIME'] } },
    comesTo: { jürgen: ['hardfail protocol_error 5.6.7'] },
    taken: 0,
  },
  {
    name: 'CHUNKING offered, BDAT unknown',
    peer: { rude: { EHLO: hello('CHUNKING', 'BINARYMIME', 'PIPELINING') } },
    comesTo: ['sent'],
  },
]

const tlsRows: Row[] = [
  { name: 'STARTTLS offered and refused', peer: startTls({ STARTTLS: '454 4.7.0 not now\r\n' }), comesTo: ['sent'], secure: false },
  { name: 'STARTTLS that hangs', peer: startTls({}), comesTo: ['sent'], secure: false, waits: ['tlsMs'] },
  { name: 'connection closed at STARTTLS', peer: startTls({ STARTTLS: hangUp }), comesTo: ['sent'], secure: false },
  {
    name: 'garbage where the TLS handshake should be',
    peer: startTls({ STARTTLS: (socket) => void socket.write('220 go\r\n', () => setImmediate(() => socket.write('no TLS here\r\n'))) }),
    comesTo: ['sent'],
    secure: false,
    waits: ['tlsMs'],
  },
  { name: 'an expired certificate', peer: tls({ tls: expiredCertificate }), comesTo: ['sent'], secure: true },
  { name: 'a certificate for another name', peer: tls({ tls: otherCertificate }), comesTo: ['sent'], secure: true },
  { name: 'a self-signed certificate', peer: tls({}), comesTo: ['sent'], secure: true },
  {
    name: 'TLS 1.0 only',
    peer: tls({ tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } }),
    comesTo: ['sent'],
    secure: true,
  },
  {
    name: 'extensions that differ after TLS',
    peer: {
      fake: {
        starttls: true,
        script: ({ stage, session, secure }) =>
          stage === 'ehlo' && session > 0 && !secure ? '250-x\n250-SIZE 1\n250 STARTTLS' : undefined,
      },
    },
    comesTo: ['sent'],
    secure: true,
  },
  {
    name: 'replies injected after the 220 of STARTTLS',
    peer: { fake: { starttls: true, startTlsReply: '220 2.0.0 go ahead\r\n250-injected\r\n250 SIZE 1\r\n' } },
    comesTo: ['sent'],
    secure: true,
  },
]

export const connectRows: Row[] = [...greetings, ...hellos, ...tlsRows]
