/** Checks that Postrider's own SMTP listeners answer on this machine, and not another program on their ports. */
import { connect, isIP, isIPv6, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { ownGreeting } from '#smtp'
import { type Check, type CheckResult, checkResult, type DoctorDeps, ok } from './check-result.ts'

const answerMs = 5000
const maxGreetingLength = 512

export const checkListeners: Check = async (deps) => {
  const { roles, smtpPort, submissionPort, submissionTlsPort } = deps.config
  if (!roles.includes('inbound')) return []
  const heard = await Promise.all([
    checkListener(deps, { name: 'incoming mail', setting: 'POSTRIDER_SMTP_PORT', port: smtpPort, isTls: false }),
    checkListener(deps, { name: 'submission', setting: 'POSTRIDER_SUBMISSION_PORT', port: submissionPort, isTls: false }),
    checkListener(deps, { name: 'submission over TLS', setting: 'POSTRIDER_SUBMISSION_TLS_PORT', port: submissionTlsPort, isTls: true }),
  ])
  const bad = heard.filter((one) => one !== undefined)
  const [first] = bad
  // The service is not running, or has another host name: one result for all three ports.
  if (bad.length === heard.length && bad.every(({ ofAll }) => ofAll !== undefined && ofAll === first?.ofAll))
    return [checkResult('SMTP listeners', 'problem', first?.ofAll ?? '', first?.checkResult.remedy ?? '')]
  // The ports are opened together: if one is taken, all stay closed, and one result is enough.
  const taken = bad.filter((one) => one.isTaken)
  if (bad.length === 0) return [ok('SMTP listeners', `listening on ports ${smtpPort}, ${submissionPort} and ${submissionTlsPort}`)]
  return (taken.length > 0 ? taken : bad).map((one) => one.checkResult)
}

interface Listener {
  name: string
  setting: string
  port: number
  isTls: boolean
}

interface Bad {
  checkResult: CheckResult
  isTaken: boolean
  /** The single result if all listeners have the same problem. */
  ofAll?: string
}

async function checkListener(deps: DoctorDeps, listener: Listener): Promise<Bad | undefined> {
  const { port, setting, isTls } = listener
  const { smtpHost, hostname } = deps.config
  const host = smtpHost === '0.0.0.0' ? '127.0.0.1' : smtpHost === '::' ? '::1' : smtpHost
  const at = isIPv6(host) ? `[${host}]:${port}` : `${host}:${port}`
  const bad = (isTaken: boolean, status: CheckResult['status'], said: string, remedy: string) => ({
    isTaken,
    checkResult: checkResult(`SMTP listener of ${listener.name}`, status, `${at}: ${said}`, remedy),
  })
  const named = isIP(hostname) === 0 ? { servername: hostname } : {}
  const heard = await hear(deps, () => (isTls ? connectTls({ host, port, rejectUnauthorized: false, ...named }) : connect({ host, port })))
  if (heard.kind === 'refused')
    return {
      ...bad(false, 'problem', 'no response', 'Start the service. If it is running, see its log'),
      ofAll: 'no response',
    }
  if (heard.kind === 'silent') return bad(false, 'problem', 'no response within 5 s', 'Check the log of the service and restart it')
  if (heard.kind === 'closed')
    return bad(
      false,
      'unknown',
      'closes the connection without a greeting',
      'The listener is busy, or another program has the port. Try again, and check the log of the service',
    )
  if (heard.kind === 'line' && heard.line === ownGreeting(hostname)) return undefined
  const other = heard.kind === 'line' ? /^220 (\S+) /.exec(heard.line)?.[1] : undefined
  if (other !== undefined && heard.kind === 'line' && heard.line === ownGreeting(other)) {
    const said = `the listener greets as ${other}, but POSTRIDER_HOSTNAME is ${hostname}`
    const remedy =
      'Run this command with the settings of the service, or restart the service with these settings. Otherwise stop the program that has the port'
    return { ...bad(true, 'problem', said, remedy), ofAll: said }
  }
  if (heard.kind === 'line' && heard.line.startsWith('4')) return bad(false, 'unknown', heard.line, 'The listener is busy: try again')
  const said = heard.kind === 'line' ? heard.line : heard.why
  return bad(
    true,
    'problem',
    `another program has the port: ${said}`,
    `Stop the program that has this port, or set ${setting} to another port`,
  )
}

type Heard =
  | { kind: 'line'; line: string }
  | { kind: 'refused' }
  | { kind: 'silent' }
  | { kind: 'closed' }
  | { kind: 'strange'; why: string }

/** Reads at most the first line, without terminal control characters. */
const hear = ({ clock }: DoctorDeps, open: () => Socket) =>
  new Promise<Heard>((resolve) => {
    const socket = open()
    let said = ''
    const end = (heard: Heard) => {
      cancel()
      socket.destroy()
      resolve(heard)
    }
    const cancel = clock.after(answerMs, () => end({ kind: 'silent' }))
    socket.on('data', (octets: Buffer) => {
      said += octets.toString('latin1', 0, maxGreetingLength)
      if (!said.includes('\n') && said.length < maxGreetingLength) return
      end({ kind: 'line', line: (said.split(/[\r\n]/, 1)[0] ?? '').replace(/[^\x20-\x7e]/g, '?') })
    })
    socket.once('end', () => end({ kind: 'closed' }))
    socket.on('error', ({ code = 'an error' }: NodeJS.ErrnoException) =>
      end(code === 'ECONNREFUSED' ? { kind: 'refused' } : { kind: 'strange', why: code }),
    )
  })
