/** A log line for a person: time, level, role, message and fields, with colours on a terminal. The JSON line stays the source. */
import { styleText } from 'node:util'

const levels: Record<number, { name: string; colour: 'gray' | 'green' | 'yellow' | 'red' }> = {
  20: { name: 'debug', colour: 'gray' },
  30: { name: 'info', colour: 'green' },
  40: { name: 'warn', colour: 'yellow' },
  50: { name: 'error', colour: 'red' },
  60: { name: 'fatal', colour: 'red' },
}

/** Values come from outside too: without control characters, they cannot move the cursor or begin a line of their own. */
const printable = (text: string) =>
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

const plainValue = /^[\p{L}\p{N}_.:/@+-]+$/u
const shown = (value: unknown) => (typeof value === 'string' && plainValue.test(value) ? value : printable(JSON.stringify(value)))

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** As pino serialises an error. */
interface LoggedError {
  message?: unknown
  stack?: unknown
}

/** The stack, one line each, below the log line. */
function stackOf({ message, stack }: LoggedError): string {
  const lines = textOf(stack ?? message).split('\n')
  return lines.map((line) => `\n    ${printable(line.trim())}`).join('')
}

/**
 * The text of one JSON line of pino. Colours appear only if `output` is a terminal and NO_COLOR is not set, which node:util checks. A line
 * that is not JSON is returned without control characters.
 */
export function logLineText(line: string, output: { isTTY?: boolean }): string {
  const record = parsed(line)
  if (record === undefined) return printable(line.trimEnd())
  const { level, time, role, msg, err, ...fields } = record
  const { name, colour } = levels[Number(level)] ?? { name: String(level), colour: 'gray' as const }
  const paint = (style: 'gray' | 'green' | 'yellow' | 'red', text: string) =>
    output.isTTY === true ? styleText(style, text, { stream: output as NodeJS.WriteStream }) : text
  const at = new Date(Number(time)).toISOString().slice(11, 23)
  const rest = Object.entries(fields).map(([key, value]) => `${printable(key)}=${shown(value)}`)
  const head = `${paint('gray', `${at}Z`)} ${paint(colour, name.padEnd(5))} ${printable(textOf(role))}: ${printable(textOf(msg))}`
  const tail = rest.length === 0 ? '' : `  ${paint('gray', rest.join(' '))}`
  return `${head}${tail}${typeof err === 'object' && err !== null ? stackOf(err) : ''}`
}

function parsed(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
