/** Finds the email that a complaint is about, by the return paths and trace headers that Postrider issued. */
import type { ReturnPaths } from '#emails'
import type { ReportEvidence } from './apply-report.ts'
import type { Names } from './read-returned-mail.ts'

export interface ComplainedEmail {
  emailId: string
  matchedBy: ReportEvidence['matchedBy']
}

/**
 * The email whose return path or trace header stands in a complaint. The first naming field outweighs the text, in which a sender may
 * have written other names. If the text names two emails, neither counts, because the complainant must be clear.
 */
export function complainedEmail(
  { fields, texts }: Names,
  returnPaths: Pick<ReturnPaths, 'readAll' | 'readTraceHeaders'>,
  nowMs: number,
): ComplainedEmail | undefined {
  for (const field of fields) {
    const [named] = returnPaths.readAll(field, nowMs)
    if (named !== undefined) return { emailId: named, matchedBy: 'return path' }
    const [traced] = returnPaths.readTraceHeaders(field, nowMs)
    if (traced !== undefined) return { emailId: traced, matchedBy: 'trace header' }
  }
  for (const matchedBy of ['return path', 'trace header'] as const) {
    for (const text of texts) {
      const [emailId, second] = matchedBy === 'trace header' ? returnPaths.readTraceHeaders(text, nowMs) : returnPaths.readAll(text, nowMs)
      if (emailId !== undefined) return second === undefined ? { emailId, matchedBy } : undefined
    }
  }
  return undefined
}
