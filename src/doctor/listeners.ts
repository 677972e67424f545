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
  const greeting = await Promise.all([
    checkListener(deps, { name: 'incoming mail', setting: 'POSTRIDER_SMTP_PORT', port: smtpPort, isTls: false }),
    checkListener(deps, { name: 'submission', setting: 'POSTRIDER_SUBMISSION_PORT', port: submissionPort, isTls: false }),
    checkListener(deps, { name: 'submission over TLS', setting: 'POSTRIDER_SUBMISSION_TLS_PORT', port: submissionTlsPort, isTls: true }),
  ])
  const bad = greeting.filter((one) => one !== undefined)
  const [first] = bad
  // The service is not running, or has another host name: one result for all three ports.
  if (bad.length === greeting.length && bad.every(({ ofAll }) => ofAll !== undefined && ofAll === first?.ofAll))
    return [checkResult('SMTP listeners', 'problem', first?.ofAll ?? '', first?.checkResult.remedy ?? '')]
  // The ports are opened together: if one is taken, all stay closed, and one result is enough.
  const taken = bad.filter((one) => one.isTaken)
  if (bad.length === 0) return [checkReach(deps)]
  return (taken.length > 0 ? taken : bad).map((one) => one.checkResult)
}

/** All listeners answer here. Other machines cannot reach a loopback address, and no check from this machine would notice. */
function checkReach({ config: { hostname, smtpHost, smtpPort, submissionPort, submissionTlsPort } }: DoctorDeps): CheckResult {
  const isPublicName = hostname.includes('.') && isIP(hostname) === 0
  const isLoopback = smtpHost === 'localhost' || smtpHost === '::1' || smtpHost.startsWith('127.')
  return isPublicName && isLoopback
    ? checkResult(
        'SMTP listeners',
        'warning',
        `listens only on this machine (${smtpHost})`,
        'To receive bounces and other mail, set POSTRIDER_SMTP_HOST=0.0.0.0 (:: also listens on IPv6), and restart the service',
      )
    : ok('SMTP listeners', `listening on ports ${smtpPort}, ${submissionPort} and ${submissionTlsPort}`)
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
  const bad = (isTaken: boolean, status: CheckResult['status'], problem: string, remedy: string) => ({
    isTaken,
    checkResult: checkResult(`SMTP listener of ${listener.name}`, status, `${at}: ${problem}`, remedy),
  })
  const named = isIP(hostname) === 0 ? { servername: hostname } : {}
  const greeting = await readGreeting(deps, () =>
    isTls ? connectTls({ host, port, rejectUnauthorized: false, ...named }) : connect({ host, port }),
  )
  if (greeting.kind === 'refused')
    return {
      ...bad(false, 'problem', 'no response', 'Start the service. If it is running, see its log'),
      ofAll: 'no response',
    }
  if (greeting.kind === 'silent') return bad(false, 'problem', 'no response within 5 s', 'Check the log of the service and restart it')
  if (greeting.kind === 'closed')
    return bad(
      false,
      'unknown',
      'closes the connection without a greeting',
      'The listener is busy, or another program has the port. Try again, and check the log of the service',
    )
  if (greeting.kind === 'line' && greeting.line === ownGreeting(hostname)) return undefined
  const other = greeting.kind === 'line' ? /^220 (\S+) /.exec(greeting.line)?.[1] : undefined
  if (other !== undefined && greeting.kind === 'line' && greeting.line === ownGreeting(other)) {
    const problem = `the listener greets as ${other}, but POSTRIDER_HOSTNAME is ${hostname}`
    const remedy =
      'Run this command with the settings of the service, or restart the service with these settings. Otherwise stop the program that has the port'
    return { ...bad(true, 'problem', problem, remedy), ofAll: problem }
  }
  if (greeting.kind === 'line' && greeting.line.startsWith('4'))
    return bad(false, 'unknown', greeting.line, 'The listener is busy: try again')
  const received = greeting.kind === 'line' ? greeting.line : greeting.why
  return bad(
    true,
    'problem',
    `another program has the port: ${received}`,
    `Stop the program that has this port, or set ${setting} to another port`,
  )
}

type Greeting =
  | { kind: 'line'; line: string }
  | { kind: 'refused' }
  | { kind: 'silent' }
  | { kind: 'closed' }
  | { kind: 'strange'; why: string }

/** Reads at most the first line, without terminal control characters. */
const readGreeting = ({ clock }: DoctorDeps, open: () => Socket) =>
  new Promise<Greeting>((resolve) => {
    const socket = open()
    let received = ''
    const end = (greeting: Greeting) => {
      cancel()
      socket.destroy()
      resolve(greeting)
    }
    const cancel = clock.after(answerMs, () => end({ kind: 'silent' }))
    socket.on('data', (octets: Buffer) => {
      received += octets.toString('latin1', 0, maxGreetingLength)
      if (!received.includes('\n') && received.length < maxGreetingLength) return
      end({ kind: 'line', line: (received.split(/[\r\n]/, 1)[0] ?? '').replace(/[^\x20-\x7e]/g, '?') })
    })
    socket.once('end', () => end({ kind: 'closed' }))
    socket.on('error', ({ code = 'an error' }: NodeJS.ErrnoException) =>
      end(code === 'ECONNREFUSED' ? { kind: 'refused' } : { kind: 'strange', why: code }),
    )
  })
