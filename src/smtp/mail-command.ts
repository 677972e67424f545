/**
 * The MAIL command of a message, and the reasons that a peer cannot accept the message (RFC 5321 section 4.1.1.2, RFC 1870, 6152, 6531).
 * Pure. Promises: an address that would break out of a command is found before the command is built.
 */
import type { Extensions, Failure, Transaction } from './types.ts'

interface MessageFault {
  kind: Failure['kind']
  message: string
}

/** The reason that no recipient of the message can get it from a peer with these extensions; undefined if it fits. */
export function findMessageFault(transaction: Transaction, extensions: Extensions): MessageFault | undefined {
  const { data, returnPath } = transaction
  if (!isFitForCommand(returnPath)) return { kind: 'protocol', message: 'the return path is not valid in an SMTP command' }
  if (data.length > 0 && !(data[data.length - 2] === 13 && data[data.length - 1] === 10))
    return { kind: 'protocol', message: 'the message does not end with CRLF' }
  const octets = declaredOctets(transaction, extensions)
  if (extensions.size !== null && extensions.size > 0 && octets > extensions.size)
    return { kind: 'size', message: `the message of ${octets} octets is over the size limit of the peer, ${extensions.size}` }
  if (needsSmtpUtf8(transaction) && !extensions.smtpUtf8)
    return { kind: 'smtputf8', message: 'the peer does not offer SMTPUTF8, which this message needs' }
  if (transaction.needs8bit && !extensions.eightBitMime)
    return { kind: 'eightbitmime', message: 'the peer does not offer 8BITMIME, which this message needs' }
  return undefined
}

/**
 * No line end or control character, and a space or bracket only in a quoted local part (RFC 5321 section 4.1.2), so that an address cannot
 * become a second command or parameter; 512 keeps within the line length.
 */
export const isFitForCommand = (address: string): boolean => address.length <= 512 && fitForCommand.test(address)

const fitForCommand = /^(?:"(?:[^"\\\x00-\x1f\x7f-\x9f\u2028\u2029]|\\[\x20-\x7e])*"@)?[^\x00-\x20<>\x7f-\x9f\u2028\u2029]*$/

/** Size of the whole message as written, with stuffed dots. */
export const octetsOf = ({ fieldsOnTop, data }: Transaction): number => (fieldsOnTop?.length ?? 0) + data.length

/** The size for the peer. RFC 1870 section 4 leaves out stuffed dots; they are counted only where they decide whether the message fits. */
function declaredOctets(transaction: Transaction, { size }: Extensions): number {
  const octets = octetsOf(transaction)
  return size === null || size === 0 || octets <= size ? octets : octets - stuffedDots(transaction.data)
}

const lineWithDot = Buffer.from('\r\n.')

function stuffedDots(data: Buffer): number {
  let dots = data[0] === 46 ? 1 : 0
  for (let at = data.indexOf(lineWithDot); at >= 0; at = data.indexOf(lineWithDot, at + lineWithDot.length)) dots++
  return dots
}

/** MAIL with the parameters that the peer supports, without its line end. */
export function mailCommand(transaction: Transaction, extensions: Extensions): string {
  const size = extensions.size === null ? '' : ` SIZE=${declaredOctets(transaction, extensions)}`
  const body = transaction.needs8bit ? ' BODY=8BITMIME' : ''
  const utf8 = needsSmtpUtf8(transaction) ? ' SMTPUTF8' : ''
  return `MAIL FROM:<${transaction.returnPath}>${size}${body}${utf8}`
}

function needsSmtpUtf8({ needsSmtpUtf8, returnPath, recipients }: Transaction): boolean {
  return needsSmtpUtf8 || !isAscii(returnPath) || !recipients.every(isAscii)
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text)
