/** `postrider classify`: classifies SMTP replies from standard input; needs no database or service. */
import { type Classified, classify, type GivenReply, rulesVersion } from '#bounces'
import { type Command, jsonOption, UsageError } from './command-definition.ts'
import { type InputLine, readLines } from './input-lines.ts'

/** A reply from a remote MTA has at most 64 KB; JSON may need six octets for one. */
const maxLineOctets = 400_000

export const classifyCommand: Command = {
  name: 'classify',
  summary: 'classify replies of mail servers from standard input',
  help: `postrider classify [--json] < REPLIES

Reads replies, one JSON object per line: {"code": 550, "enhanced": "5.1.1", "text": "550 5.1.1 user unknown"}. The text may contain the
codes and several lines. If code or enhanced is null or missing, the command takes it from the text. Skips empty lines. Prints one line for
each reply, in the same order. Stores nothing and needs no running service. The version of the rules is ${rulesVersion}.

With --json: {"classification", "classificationCode", "fault", "permanent"}. permanent follows the reply code (5xx), or without a code the
classification. A line that is not a reply returns {"error", "line"}, and the exit code is 1.

fault names the party that can fix it:
  recipient    address: wrong, deleted, closed or full, or the recipient refuses the sender
  content      message: spam, a virus, its size or format
  sender       sending domain: SPF, DKIM, DMARC, reverse DNS, a refused sender
  reputation   reputation of the sending address, or its sending rate
  server       recipient's server: an error, or a rule of its own
  ours         this program, its settings or its operator: TLS, commands, a quota of its own

classification   code   meaning
  invalid_recipient        10   address or domain does not exist                  (suppresses when permanent)
  no_mailbox               11   mailbox closed, disabled or moved                 (suppresses when permanent)
  not_accepting_mail       12   the address or its whole domain accepts no mail   (suppresses when permanent)
  mailbox_full             20   mailbox full or over quota
  message_too_large        21   message larger than the server accepts
  spam_block               30   rejected as spam, or the sending address is blocklisted
  policy_violation         31   against a policy: authentication, relaying, content
  tls_required             32   TLS required, or certificate not accepted
  connection_error         40   no connection, or connection lost
  dns_error                41   DNS lookup failed or returned no route
  temporarily_unavailable  42   temporary: greylisting, rate limits, server errors
  protocol_error           50   command not understood, mail loop
  unclassified             99   no rule matches`,
  options: jsonOption,
  async run(given, deps) {
    if (process.stdin.isTTY) throw new UsageError('classify reads replies from standard input: postrider classify --json < replies.jsonl')
    const bad = await classifyLines(process.stdin, given.options.json === true, (line) => deps.print(line))
    if (bad > 0) throw new Error(`${bad} ${bad === 1 ? 'line is not a reply' : 'lines are not replies'}`)
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
    print(json ? JSON.stringify('error' in reply ? reply : classify(reply)) : rowOf(reply))
  }
  return bad
}

interface BadLine {
  error: string
  line: number
}

function replyIn({ text, number }: InputLine): GivenReply | BadLine {
  const bad = (error: string): BadLine => ({ error, line: number })
  if (text === undefined) return bad(`the line is longer than ${maxLineOctets} bytes`)
  const value = parsed(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return bad('the line is not a JSON object')
  const { code = null, enhanced = null, text: words } = value as Record<string, unknown>
  if (typeof words !== 'string') return bad('text is missing or not a string')
  if (code !== null && !(typeof code === 'number' && Number.isInteger(code) && code >= 200 && code <= 599))
    return bad('code is not null or a number from 200 to 599')
  if (enhanced !== null && typeof enhanced !== 'string') return bad('enhanced is not null or a string')
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

function rowOf(reply: GivenReply | BadLine): string {
  if ('error' in reply) return `line ${reply.line}: ${reply.error}`
  const { classification, classificationCode, fault, permanent }: Classified = classify(reply)
  return row(classification, String(classificationCode), fault, permanent ? 'permanent' : 'temporary', reply.text)
}
