/** `postrider classify`: classifies SMTP replies from standard input; needs no database or service. */
import { type Classified, classify, type GivenReply, rulesVersion } from '#bounces'
import { type Command, jsonOption, UsageError } from './command-definition.ts'
import { type InputLine, readLines } from './input-lines.ts'

/** A reply from a remote MTA has at most 64 KB; JSON may need six octets for one. */
const maxLineOctets = 400_000

export const classifyCommand: Command = {
  name: 'classify',
  summary: 'what replies of mail servers mean, from standard input',
  help: `postrider classify [--json] < REPLIES

Reads replies, one JSON object a line: {"code": 550, "enhanced": "5.1.1", "text": "550 5.1.1 user unknown"}. The text may have the codes
in it or not, and more than one line; code and enhanced may be null or missing, and are then looked for in the text. Empty lines are
passed over. Prints a line for each, in the same order; nothing is stored, and no service is needed. The rules' version is ${rulesVersion}.

With --json: {"classification", "classificationCode", "fault", "permanent"}. permanent is what the reply code says (5xx), whatever the text
says; without any code it is what the classification says. A line that is no reply gives {"error", "line"} and exit code 1 at the end.

fault says who could mend it:
  recipient    the address is wrong, gone, closed or full, or they refuse us themselves
  content      the message: spam, a virus, its size or form
  sender       the sending domain: SPF, DKIM, DMARC, reverse DNS, a sender that is refused
  reputation   what they think of our address, or how fast we send
  server       their server: trouble, or a rule of its own
  ours         this program, its settings or its operator: TLS, commands, a quota of ours

classification   code   what it says of the message
  invalid_recipient        10   there is no such address or domain              (suppresses when permanent)
  no_mailbox               11   it was closed, disabled, or has moved           (suppresses when permanent)
  not_accepting_mail       12   it takes no mail, or its whole domain does not  (suppresses when permanent)
  mailbox_full             20   full or over its quota
  message_too_large        21   larger than they take
  spam_block               30   taken for spam, or our address is on a list
  policy_violation         31   against a rule: authentication, relaying, content
  tls_required             32   not without TLS, or not with this certificate
  connection_error         40   no connection, or it broke
  dns_error                41   DNS did not answer, or knows no way
  temporarily_unavailable  42   not now: greylisting, rates, trouble
  protocol_error           50   commands that were not understood, loops
  unclassified             99   nothing of that was said`,
  options: jsonOption,
  async run(given, deps) {
    if (process.stdin.isTTY) throw new UsageError('classify reads replies from standard input: postrider classify --json < replies.jsonl')
    const bad = await classifyLines(process.stdin, given.options.json === true, (line) => deps.print(line))
    if (bad > 0) throw new Error(`${bad} ${bad === 1 ? 'line was' : 'lines were'} no reply`)
  },
}

/** Returns the number of lines that were not replies. */
export async function classifyLines(input: AsyncIterable<Uint8Array>, json: boolean, print: (line: string) => void): Promise<number> {
  let bad = 0
  if (!json) print(row('classification', 'code', 'fault', '', 'reply'))
  for await (const line of readLines(input, maxLineOctets)) {
    if (line.text?.trim() === '') continue
    const reply = replyIn(line)
    if ('error' in reply) bad += 1
    print(json ? JSON.stringify('error' in reply ? reply : classify(reply)) : told(reply))
  }
  return bad
}

interface BadLine {
  error: string
  line: number
}

function replyIn({ text, number }: InputLine): GivenReply | BadLine {
  const bad = (error: string): BadLine => ({ error, line: number })
  if (text === undefined) return bad(`the line has more than ${maxLineOctets} octets`)
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('the line is no JSON object')
  const { code = null, enhanced = null, text: words } = value as Record<string, unknown>
  if (typeof words !== 'string') return bad('text is missing, or no string')
  if (code !== null && !(typeof code === 'number' && Number.isInteger(code) && code >= 200 && code <= 599))
    return bad('code is neither null nor a number from 200 to 599')
  if (enhanced !== null && typeof enhanced !== 'string') return bad('enhanced is neither null nor a string')
  return { code: code as number | null, enhanced, text: words }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Removes control characters, because the text comes from outside and is printed to the terminal. */
const oneLine = (text: string) => text.replace(/\p{Cc}+/gu, ' ').slice(0, 100)

const row = (classification: string, code: string, fault: string, permanent: string, text: string) =>
  `${classification.padEnd(24)}${code.padEnd(6)}${fault.padEnd(12)}${permanent.padEnd(11)}${oneLine(text)}`

function told(reply: GivenReply | BadLine): string {
  if ('error' in reply) return `line ${reply.line}: ${reply.error}`
  const { classification, classificationCode, fault, permanent }: Classified = classify(reply)
  return row(classification, String(classificationCode), fault, permanent ? 'permanent' : 'temporary', reply.text)
}
