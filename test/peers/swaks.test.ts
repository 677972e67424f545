/** The three most used clients, one of them from a Debian package: swaks. */
import { execFileSync } from 'node:child_process'
import { test } from 'vitest'
import { byNodemailer, byPython, bySwaks, expectFaithful } from '../inbound/fidelity-world.ts'

const answers = (program: string, ...words: string[]) => {
  try {
    return execFileSync(program, words, { stdio: 'pipe' }).toString()
  } catch {
    return ''
  }
}
const missing = [
  ...(answers('swaks', '--support').includes('TLS supported') ? [] : ['swaks with libnet-ssleay-perl']),
  ...(answers('python3', '--version') === '' ? ['python3'] : []),
]

test.skipIf(missing.length > 0)(
  `five hundred messages by nodemailer, swaks and smtplib arrive as they were, and their signatures hold${missing.length > 0 ? ` (there is no ${missing.join(' and no ')})` : ''}`,
  () => expectFaithful([byNodemailer, bySwaks, byPython]),
  400_000,
)
