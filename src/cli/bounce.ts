/** `postrider bounce parse`: classifies bounce and complaint messages from files; needs no database or service. */
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Report, readReport } from '#bounces'
import { type Command, jsonOption } from './command-definition.ts'

/** The usual limit of a mail server; the rest of a file is not read. */
const maxOctets = 26_214_400

const shown = (report: Report, file: string) => ({
  file,
  kind: report.kind,
  recipient: report.recipient,
  status: report.status,
  classification: report.classification,
  fault: report.fault,
  permanent: report.permanent,
  originalMessageId: report.originalMessageId,
  reason: report.reason,
})

/** Removes control characters, because the text comes from outside and is printed to the terminal. */
const cell = (text: string | null, width: number) =>
  (text ?? '-')
    .replace(/\p{Cc}/gu, ' ')
    .slice(0, width)
    .padEnd(width)

const row = (one: ReturnType<typeof shown>) => {
  const what = one.classification === null ? null : `${one.classification}${one.permanent ? ', permanent' : ''}`
  return `${cell(one.kind, 10)}  ${cell(one.recipient, 32)}  ${cell(one.status, 7)}  ${cell(what, 34)}  ${one.file}${
    one.reason === null ? '' : `\n            ${cell(one.reason, 160).trimEnd()}`
  }`
}

export const bounceParse: Command = {
  name: 'bounce parse',
  summary: 'parse bounces, complaints and auto-responses from files',
  help: `postrider bounce parse FILE... [--json]

Reads raw messages (.eml files; from a folder, all its files) and prints the kind of each: bounce, delay notice, complaint, auto-response
(auto-reply) or other, with the recipient and the reason. Changes nothing and needs no running service. Reads at most 25 MB of each file.
With --json, one line per file: {file, kind, recipient, status, classification, fault, permanent, originalMessageId, reason}; null if the
report does not contain the field. Unreadable files are listed at the end, with exit code 1.`,
  options: jsonOption,
  positionals: ['FILE...'],
  async run(given, deps) {
    const unread: string[] = []
    if (given.options.json !== true) {
      deps.print(`${cell('kind', 10)}  ${cell('recipient', 32)}  ${cell('status', 7)}  ${cell('classification', 34)}  file`)
    }
    for (const named of given.positionals) {
      for (const file of await filesOf(named)) {
        try {
          const record = shown(readReport(await startOf(file)), file)
          deps.print(given.options.json === true ? JSON.stringify(record) : row(record))
        } catch (error) {
          unread.push(`cannot read ${file}:  ${error instanceof Error ? error.message : String(error)}`)
        }
      }
    }
    if (unread.length > 0) throw new Error(unread.join('\n'))
  },
}

/** Unreadable entries stay in the list, so that reading them reports the error. */
async function filesOf(path: string): Promise<string[]> {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isDirectory()) return [path]
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => undefined)
  if (!entries) return [path]
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

async function startOf(path: string): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const { size } = await file.stat()
    const buffer = Buffer.allocUnsafe(Math.min(size, maxOctets))
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    return buffer.subarray(0, length)
  } finally {
    await file.close()
  }
}
