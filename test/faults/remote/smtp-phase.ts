/** Misbehaviours between MAIL and QUIT. */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import type { FakeMxOptions, MxAnswer, MxEvent } from '../../support/fake-mx.ts'
import { dripping, hangUp, type Misbehaviour, pouring, silent } from '../../support/misbehaving-peer.ts'
import { type PeerOf, type Row, untilGivenUp } from './row-type.ts'

const script = (answer: (event: MxEvent) => MxAnswer, options: FakeMxOptions = {}): PeerOf => ({ fake: { ...options, script: answer } })
/** Gives this reply at one stage, every time. */
const at = (stage: MxEvent['stage'], reply: MxAnswer) => script((event) => (event.stage === stage ? reply : undefined))
const row = (name: string, peer: Exclude<Row['peer'], undefined>, comesTo: Row['comesTo'], more: Partial<Row> = {}): Row => ({
  name,
  peer,
  comesTo,
  ...more,
})
const rude = (name: string, how: Misbehaviour, comesTo: Row['comesTo'], more: Partial<Row> = {}): Row =>
  row(name, { rude: how }, comesTo, more)
/** Stops reading, so that a message larger than the network buffers cannot end before Postrider has seen the poured octets. */
const pouringOnly = (text: string) => (socket: Socket) => {
  socket.pause()
  pouring(text)(socket)
}
/** Refuses each recipient that `isMeant` accepts the first time it is named. */
const firstTime = (reply: string, isMeant: (address: string) => boolean) => () => {
  const named = new Set<string>()
  return script(({ stage, argument }) => {
    if (stage !== 'rcpt' || !isMeant(argument) || named.has(argument)) return undefined
    named.add(argument)
    return reply
  })
}
/** To each message of a connection after the first `taken`. */
const afterTaken = (taken: number, reply: string) => () => {
  const mails = new Map<number, number>()
  return script(({ stage, session }) => {
    if (stage !== 'mail') return undefined
    mails.set(session, (mails.get(session) ?? 0) + 1)
    return (mails.get(session) ?? 0) > taken ? reply : undefined
  })
}
/** `ann` for ann@one.example and ann.17@one.example. */
const nameOf = (address: string) => address.split(/[.@]/, 1)[0] ?? ''
const large = { message: { fileOctets: 6_000_000 } }
const unknownTwice = ['softfail connection_error', 'softfail connection_error']
const unknown = { outcomeUnknown: true, ends: 'hardfail' } as const
const ehloWithout = '250 rude.test\r\n'

/** Each octet in its own packet. */
const octetByOctet = (text: string) => (socket: Socket) => {
  if (text !== '' && socket.writable) socket.write(text.slice(0, 1), () => setImmediate(() => octetByOctet(text.slice(1))(socket)))
}

const breaks: Row[] = [
  row('421 to MAIL', at('mail', '421 4.3.2 closing'), ['softfail temporarily_unavailable 4.3.2']),
  row('421 to RCPT', at('rcpt', '421 4.3.2 closing'), ['softfail temporarily_unavailable 4.3.2']),
  row('421 to DATA', at('data', '421 4.3.2 closing'), ['softfail temporarily_unavailable 4.3.2']),
  rude(
    '421 in the middle of the content',
    { content: (socket) => void (socket.writable && socket.end('421 4.3.2 closing\r\n')) },
    ['softfail temporarily_unavailable 4.3.2'],
    { ...large, taken: 0 },
  ),
  row('421 to the final dot', at('content', '421 4.3.2 closing'), ['softfail temporarily_unavailable 4.3.2'], { taken: 0 }),
  row('connection closed at MAIL', at('mail', { close: true }), untilGivenUp('connection_error')),
  row('connection closed at RCPT', at('rcpt', { close: true }), untilGivenUp('connection_error')),
  row('connection closed at DATA', at('data', { close: true }), untilGivenUp('connection_error')),
  rude('connection closed in the middle of the content', { content: hangUp }, untilGivenUp('connection_error'), { ...large, taken: 0 }),
  row('connection closed after the final dot', at('content', { close: true }), unknownTwice, unknown),
  row('no reply to the final dot', at('content', { silent: true }), unknownTwice, { ...unknown, waits: ['finalReplyMs'] }),
  row('connection closed after the reply to the final dot', at('content', { reply: '250 2.0.0 ok', close: true }), ['sent'], { taken: 1 }),
  row(
    'an unknown outcome, then a server that works',
    script(({ stage, session }) => (stage === 'content' && session === 1 ? { close: true } : undefined)),
    ['softfail connection_error', 'sent'],
    { taken: 1, amongMany: [['sent']], maxAmongMany: 1 },
  ),
  rude(
    'a reply to the final dot just before the timeout',
    { dot: (socket) => void setTimeout(() => socket.writable && socket.write('250 2.0.0 at last\r\n'), 3000) },
    ['sent'],
    { slowMs: 3000 },
  ),
  rude('silence at MAIL', { EHLO: ehloWithout, MAIL: silent }, untilGivenUp('connection_error'), { waits: ['commandMs'] }),
  rude('silence at RCPT (half open)', { EHLO: ehloWithout, RCPT: silent }, untilGivenUp('connection_error'), { waits: ['commandMs'] }),
  rude('silence at DATA', { DATA: (socket) => void socket.pause() }, untilGivenUp('connection_error'), { taken: 0, waits: ['dataMs'] }),
  rude(
    'a server that stops reading in the middle of the content',
    {
      DATA: (socket) => {
        socket.write('354 go on\r\n')
        socket.pause()
      },
    },
    untilGivenUp('connection_error'),
    { ...large, taken: 0, waits: ['blockMs'] },
  ),
  rude(
    'endless reply, octet by octet',
    { EHLO: ehloWithout, MAIL: dripping(`250 ${'x'.repeat(2000)}`, 50) },
    untilGivenUp('connection_error'),
    { waits: ['commandMs'] },
  ),
  row('no answer to QUIT', at('quit', { silent: true }), ['sent']),
]

const forms: Row[] = [
  rude(
    'replies cut into packets of one octet',
    { EHLO: ehloWithout, MAIL: octetByOctet('250 2.1.0 ok\r\n'), RCPT: octetByOctet('250 2.1.5 ok\r\n') },
    ['sent'],
  ),
  rude(
    'replies of several lines everywhere',
    { MAIL: '250-a\r\n250-b\r\n250 c\r\n', RCPT: '250-a\r\n250 b\r\n', dot: '250-a\r\n250 b\r\n' },
    ['sent'],
  ),
  rude(
    'replies ended by LF alone',
    { connect: '220 x\n', EHLO: '250-x\n250 8BITMIME\n', MAIL: '250 ok\n', RCPT: '250 ok\n', dot: '250 ok\n' },
    ['sent'],
  ),
  rude('codes without text', { MAIL: '250\r\n', RCPT: '250\r\n', dot: '250\r\n' }, ['sent']),
  rude('a code and no space', { MAIL: '250ok\r\n' }, untilGivenUp('protocol_error')),
  rude('lines of one reply with different codes', { RCPT: '250-ok\r\n550 no\r\n' }, untilGivenUp('protocol_error')),
  rude('a reply without a last line', { EHLO: ehloWithout, RCPT: '250-ok\r\n250-ok\r\n' }, untilGivenUp('connection_error'), {
    waits: ['commandMs'],
  }),
  rude('100,000 lines in a reply', { RCPT: '550-no\r\n'.repeat(100_000) }, untilGivenUp('protocol_error')),
  rude('10 GB instead of a reply', { RCPT: pouring('550-no\r\n') }, untilGivenUp('protocol_error')),
  rude('10 GB without a line end', { MAIL: pouring('x') }, untilGivenUp('protocol_error')),
  rude('10 GB while the content is sent', { content: pouringOnly('y\r\n') }, untilGivenUp('protocol_error'), { ...large, taken: 0 }),
  rude('HTML instead of a reply', { MAIL: '<html><body>Blocked</body></html>\r\n' }, untilGivenUp('protocol_error')),
  rude('a code of two digits', { MAIL: '25 ok\r\n' }, untilGivenUp('protocol_error')),
  rude('the code 999', { RCPT: '999 what\r\n' }, untilGivenUp('protocol_error')),
  rude('the code 299', { RCPT: '299 fine\r\n' }, ['sent']),
  rude('NUL, escapes and broken UTF-8 in a refusal', { RCPT: '550 5.1.1 \x00\x1b[31m\xff no such user\r\n' }, [
    'hardfail invalid_recipient 5.1.1',
  ]),
]

const toldAtOnce = new WeakSet<Socket>()
const pipelining: Row[] = [
  rude(
    'one reply too many to pipelined commands',
    { RCPT: (socket, _, __, behind) => void socket.write('250 ok\r\n'.repeat(behind === '' ? 1 : 3)) },
    ['sent'],
    { maxConnections: 2, taken: 1 },
  ),
  rude(
    'replies out of step to pipelined commands',
    { RCPT: (socket, _, __, behind) => void socket.write(behind === '' ? '250 ok\r\n' : '354 go on\r\n') },
    ['sent'],
    { maxConnections: 2, taken: 1 },
  ),
  rude(
    'connection closed after the first reply to pipelined commands',
    {
      RCPT(socket, _, __, behind) {
        if (behind === '') socket.write('250 ok\r\n')
        else socket.destroy()
      },
    },
    ['sent'],
    { maxConnections: 2, taken: 1 },
  ),
  rude(
    'connection closed whenever commands are pipelined',
    { MAIL: (socket, _, __, behind) => void (behind === '' ? socket.write('250 ok\r\n') : socket.destroy()) },
    ['sent'],
    { maxConnections: 2, taken: 1 },
  ),
  rude(
    'fewer replies than commands',
    {
      RCPT(socket, _, __, behind) {
        if (behind !== '') toldAtOnce.add(socket)
        socket.write('250 ok\r\n')
      },
      DATA: (socket) => void (toldAtOnce.has(socket) || socket.write('354 go on\r\n')),
    },
    ['softfail connection_error', 'sent'],
    { taken: 1, waits: ['dataMs'], amongMany: [['sent']] },
  ),
  rude('replies always out of step', { RCPT: '354 go on\r\n' }, untilGivenUp('protocol_error'), { taken: 0 }),
  rude('reply before any command', { connect: '220 x\r\n220 y\r\n250 z\r\n' }, untilGivenUp('protocol_error')),
  rude('greeting sent twice', { connect: '220 x\r\n220 y\r\n' }, ['sent'], { maxConnections: 1 }),
  rude('greeting repeated before the reply to EHLO', { EHLO: '220 again\r\n250-rude.test\r\n250 PIPELINING\r\n' }, ['sent'], {
    maxConnections: 1,
  }),
  rude('endless greetings', { connect: '220 x\r\n'.repeat(20) }, untilGivenUp('protocol_error')),
  rude('greeting after the reply to the final dot', { dot: '250 ok\r\n220 again\r\n' }, ['sent'], { maxConnections: 1 }),
  // The second reply arrives while the message is being sent.
  rude('354 twice', { EHLO: ehloWithout, DATA: '354 go\r\n354 go\r\n' }, unknownTwice, unknown),
  rude('250 to DATA', { DATA: '250 ok\r\n' }, untilGivenUp('protocol_error'), { taken: 0 }),
  row(
    '354 to DATA although every recipient was refused',
    script(({ stage }) => (stage === 'rcpt' ? '550 5.1.1 no such user' : stage === 'data' ? '354 go on' : undefined)),
    ['hardfail invalid_recipient 5.1.1'],
    { look: (taken) => assert.equal(taken.map((one) => one.content).join(''), '') },
  ),
]

const partial = ({ stage, argument }: MxEvent): MxAnswer => {
  if (stage !== 'rcpt') return undefined
  const replies: Record<string, string> = {
    gone: '550 5.1.1 no such user',
    later: '450 4.2.1 mailbox busy',
    many: '452 4.5.3 too many recipients',
    full: '452 4.2.2 mailbox full',
  }
  return replies[nameOf(argument)]
}

const answers: Row[] = [
  row('some recipients refused, some deferred, some accepted', script(partial), {
    ann: ['sent'],
    gone: ['hardfail invalid_recipient 5.1.1'],
    later: untilGivenUp('temporarily_unavailable 4.2.1'),
    many: untilGivenUp('temporarily_unavailable 4.5.3'),
    full: untilGivenUp('mailbox_full 4.2.2'),
    ben: ['sent'],
  }),
  row('550 to MAIL', at('mail', '550 5.1.8 sender address rejected: domain not found'), ['hardfail policy_violation 5.1.8']),
  row('550 to RCPT, no such user', at('rcpt', '550 5.1.1 no such user'), ['hardfail invalid_recipient 5.1.1']),
  row('550 to DATA', at('data', '550 5.7.1 we take nothing of this kind'), ['hardfail policy_violation 5.7.1'], { taken: 0 }),
  row('552 after the content, mailbox full', at('content', '552 5.2.2 mailbox full'), ['hardfail mailbox_full 5.2.2'], { taken: 0 }),
  row('552 after the content, too large', at('content', '552 5.3.4 message too big'), ['hardfail message_too_large 5.3.4'], { taken: 0 }),
  row('452 after the content', at('content', '452 4.3.1 insufficient system storage'), untilGivenUp('temporarily_unavailable 4.3.1')),
  row("550 that blocks the sender's address", at('rcpt', '550 5.7.1 blocked, listed at zen.spamhaus.org'), ['hardfail spam_block 5.7.1'], {
    othersWait: true,
  }),
  row('554 for spam after the content', at('content', '554 5.7.1 message rejected as spam'), ['hardfail spam_block 5.7.1'], {
    taken: 0,
    othersWait: true,
  }),
  row('530 that asks for TLS', at('mail', '530 5.7.0 must issue a STARTTLS command first'), ['hardfail tls_required 5.7.0']),
  row('250 with a text that says rejected', at('content', '250 2.0.0 message rejected'), ['sent']),
  row('550 with 2.0.0', at('rcpt', '550 2.0.0 fine'), ['hardfail unclassified 2.0.0']),
  row('550 with 4.2.1', at('rcpt', '550 4.2.1 mailbox disabled'), ['hardfail no_mailbox 4.2.1']),
  row('450 with 5.1.1', at('rcpt', '450 5.1.1 no such user'), untilGivenUp('invalid_recipient 5.1.1')),
  row(
    'greylisting',
    firstTime('451 4.7.1 greylisted, try again later', () => true),
    ['softfail temporarily_unavailable 4.7.1', 'sent'],
    {
      taken: 1,
    },
  ),
  row('451 at every attempt', at('rcpt', '451 4.7.1 greylisted, try again later'), untilGivenUp('temporarily_unavailable 4.7.1')),
]

const many = Object.fromEntries(['a', 'b', 'c', 'd', 'e'].map((name) => [name, ['sent']]))
const habits: Row[] = [
  row('connection closed after each message', at('content', { reply: '250 2.0.0 ok', close: true }), many, {
    to: Object.keys(many),
    taken: 5,
  }),
  row(
    'third connection closed at its greeting',
    script(({ stage, session }) => (stage === 'connect' && session === 3 ? { close: true } : undefined)),
    many,
    // If this is the only connection of a process, all mail waiting for it fails with it.
    { to: Object.keys(many), taken: 5, amongMany: [['softfail connection_error', 'sent']] },
  ),
  row(
    '421 for one of five messages',
    firstTime('421 4.7.0 too many messages, slow down', (address) => nameOf(address) === 'b'),
    { ...many, b: ['softfail temporarily_unavailable 4.7.0', 'sent'] },
    { taken: 5, isRateLimited: true },
  ),
  row('421 after two messages of each connection', afterTaken(2, '421 4.7.0 too many messages on this connection'), many, { taken: 5 }),
  row('452 after two messages of each connection', afterTaken(2, '452 4.5.3 too many messages for this session'), many, { taken: 5 }),
]

export const talkRows: Row[] = [...breaks, ...forms, ...pipelining, ...answers, ...habits]
