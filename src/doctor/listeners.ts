/** Whether our own SMTP listeners answer on this machine, and not another program in their place. */
import { connect, isIPv6, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { type Check, type DoctorDeps, type Finding, finding, ok } from './finding.ts'

const answerMs = 5000
const longestGreeting = 512

export const checkListeners: Check = async (deps) => {
  const { roles, smtpPort, submissionPort, submissionTlsPort } = deps.config
  if (!roles.includes('inbound')) return []
  const findings = await Promise.all([
    checkListener(deps, 'incoming mail', 'POSTRIDER_SMTP_PORT', smtpPort, 'plain'),
    checkListener(deps, 'submission', 'POSTRIDER_SUBMISSION_PORT', submissionPort, 'plain'),
    checkListener(deps, 'submission over TLS', 'POSTRIDER_SUBMISSION_TLS_PORT', submissionTlsPort, 'tls'),
  ])
  const bad = findings.filter((one) => one !== undefined)
  return bad.length > 0 ? bad : [ok('SMTP listeners', `answer on ports ${smtpPort}, ${submissionPort} and ${submissionTlsPort}`)]
}

async function checkListener(
  deps: DoctorDeps,
  what: string,
  setting: string,
  port: number,
  form: 'plain' | 'tls',
): Promise<Finding | undefined> {
  const name = `SMTP listener of ${what}`
  const { smtpHost, hostname } = deps.config
  const host = smtpHost === '0.0.0.0' ? '127.0.0.1' : smtpHost === '::' ? '::1' : smtpHost
  const at = isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
  const open = () =>
    form === 'plain' ? connect({ host, port }) : connectTls({ host, port, servername: hostname, rejectUnauthorized: false })
  const { greeting, complaint } = await greetingOf(deps, open)
  if (greeting.startsWith(`220 ${hostname} `)) return undefined
  if (greeting === '' && complaint !== undefined)
    return finding(
      name,
      'problem',
      `${at}: ${complaint}`,
      'Start the service; while it runs, its log says why the port could not be opened',
    )
  return finding(
    name,
    'problem',
    `${at}: another program answers${greeting === '' ? '' : `: ${greeting}`}`,
    `End that program, or set ${setting} to another port`,
  )
}

/** The first line at most, and why there is none. */
const greetingOf = ({ clock }: DoctorDeps, open: () => Socket) =>
  new Promise<{ greeting: string; complaint?: string }>((resolve) => {
    const socket = open()
    let said = ''
    const end = (complaint?: string) => {
      cancel()
      socket.destroy()
      const [line = ''] = said.split(/[\r\n]/, 1)
      resolve({ greeting: line.replace(/[^\x20-\x7e]/g, '?'), ...(complaint === undefined ? {} : { complaint }) })
    }
    const cancel = clock.after(answerMs, () => end())
    socket.on('data', (octets: Buffer) => {
      said += octets.toString('latin1', 0, longestGreeting)
      if (said.includes('\n') || said.length >= longestGreeting) end()
    })
    socket.once('end', () => end())
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'ECONNREFUSED' ? 'nothing answers' : error.message))
  })
