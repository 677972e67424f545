/** Sends mail for the rows of the table over the API, and reads its state. */

import type { Row } from './row-type.ts'
import { type EmailState, expectedOf } from './verdict.ts'

/** Calls the API of a service. Returns the data of the response or throws. */
export type Call = (method: 'GET' | 'POST', path: string, body?: object) => Promise<unknown>

const sender = 'shop@shop.example.com'
export const senderDomain = 'shop.example.com'

/** Local parts of all recipients of a row. */
export const recipientsOf = (row: Row): readonly string[] => row.to ?? Object.keys(expectedOf(row))

export function messageOf(row: Row): { subject: string; text: string; attachments: object[] } {
  const { text = 'Hello', fileOctets } = row.message ?? {}
  const file = (octets: number) => ({
    filename: 'a.bin',
    contentType: 'application/octet-stream',
    content: Buffer.alloc(octets, 65).toString('base64'),
  })
  return { subject: 'Hello', text, attachments: fileOctets === undefined ? [] : [file(fileOctets)] }
}

/** Returns the email's id. */
export async function send(call: Call, to: string, message: object): Promise<string> {
  const { id } = (await call('POST', '/emails', { from: sender, to: [to], ...message })) as { id: string }
  return id
}

/** Returns their ids, in order. */
export async function batch(call: Call, emails: readonly object[]): Promise<string[]> {
  const { results } = (await call('POST', '/emails/batch', { from: sender, emails })) as { results: { id?: string; error?: unknown }[] }
  return results.map(({ id, error }) => {
    if (id === undefined) throw new Error(`an email of a batch was refused: ${JSON.stringify(error)}`)
    return id
  })
}

/** Sends one email to each of the row's recipients, in order. Calls `told` with each id as soon as it is known. */
export async function sendRow(call: Call, row: Row, domain: string, told: (to: string, id: string) => void): Promise<void> {
  for (const to of recipientsOf(row)) told(to, await send(call, `${to}@${domain}`, messageOf(row)))
}

export const read = async (call: Call, id: string): Promise<EmailState> =>
  (await call('GET', `/emails/${id}?expand=deliveries`)) as EmailState
