/** The labelled reports of test/corpus/reports (with their labels.jsonl), and the accuracy with which Postrider reads them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Report, readReport } from '#bounces'

export interface Label {
  file: string
  kind: string
  recipient: string | null
  status: string | null
  classification: string | null
  originalMessageId: string | null
}

export const judged = ['kind', 'recipient', 'classification', 'status', 'originalMessageId'] as const
export type Judged = (typeof judged)[number]

export interface Judgement {
  label: Label
  report: Report
  wrong: Judged[]
}

/** Judges a folder with a labels.jsonl. Each line has the file and its correct reading; fields without a label are not judged. */
export function judgeReports(folder: string): Judgement[] {
  const lines = readFileSync(join(folder, 'labels.jsonl'), 'utf8').split('\n')
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const label: Label = JSON.parse(line)
      const { octets, hasNullSender } = asReceived(readFileSync(join(folder, label.file)))
      const report = readReport(octets, hasNullSender)
      return { label, report, wrong: judged.filter((key) => key in label && !same(label[key], report[key])) }
    })
}

/**
 * The message as its server sent it: the Return-Path field, which a server adds at delivery, is left out, and its fact stands apart. A file without
 * the field counts as one with an envelope sender.
 */
function asReceived(file: Buffer): { octets: Buffer; hasNullSender: boolean } {
  const text = file.toString('latin1')
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length
  const [field = ''] = /^Return-Path:.*\n(?:[ \t].*\n)*/im.exec(text.slice(0, end)) ?? []
  return { octets: Buffer.from(text.replace(field, ''), 'latin1'), hasNullSender: /:\s*<\s*>/.test(field) }
}

const same = (one: string | null, other: string | null) => one?.toLowerCase() === other?.toLowerCase()

export const share = (judgements: readonly Judgement[], ...keys: Judged[]): number =>
  judgements.filter(({ wrong }) => !keys.some((key) => wrong.includes(key))).length / judgements.length
