/** Debian's clients of SES against the whole program: boto3, django-anymail, Symfony, and the AWS command line, also after a rotation of the secret. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { recordSdkCalls } from '../support/record-sdk-calls.ts'
import { type CallEnd, noteSdkCall, noteSdkCalls } from '../support/sdk-calls.ts'
import { type ServiceProcess, startServiceProcess } from '../support/spawned-service.ts'

const hasPython = (() => {
  try {
    execFileSync('/usr/bin/python3', ['-c', 'import anymail, boto3'], { stdio: 'pipe' })
    return true
  } catch {
    return false
  }
})()
const aws = '/usr/bin/aws'
const hasAws = existsSync(aws)
const hasSymfony = existsSync('/usr/share/php/Symfony/Component/Mailer/Bridge/Amazon/autoload.php')
const python = '/usr/bin/python3'
const fileOf = (name: string) => new URL(name, import.meta.url).pathname
const run = promisify(execFile)

recordSdkCalls()
let service: ServiceProcess
let key: { key: string; accessKeyId: string }
beforeAll(async () => {
  if (!hasPython && !hasAws && !hasSymfony) return
  service = await startServiceProcess({ POSTRIDER_RATE_LIMIT: '1000', POSTRIDER_SEND_LIMIT: 'unlimited' })
  key = (await service.command('key', 'create', '--type', 'test', '--format', 'ses', '--json')) as unknown as typeof key
}, 90_000)
afterAll(() => service?.[Symbol.asyncDispose]())

const emailOf = async (id: string) => (await service.call('GET', `/emails/${id}?expand=raw`, undefined, service.testKey)).body.data

/** The answers of boto3 and django-anymail. */
async function answersOf(url: string): Promise<Record<string, unknown>> {
  const { stdout } = await run(python, [fileOf('ses-clients.py'), url, key.accessKeyId, key.key])
  return JSON.parse(stdout) as Record<string, unknown>
}

test.skipIf(!hasPython)(
  `boto3 and django-anymail call both versions${hasPython ? '' : ' (python3-boto3 or python3-django-anymail is missing)'}`,
  { timeout: 60_000 },
  async () => {
    const { calls, ...answers } = await answersOf(service.url)
    noteSdkCalls('python3-boto3', calls as [string, CallEnd][])
    noteSdkCall('python3-django-anymail', 'amazon_ses', 'answered')
    noteSdkCall('python3-django-anymail', 'amazon_ses', 'refused')
    expect(answers).toMatchObject({
      account: 1000,
      enabled: true,
      quota: 4,
      identities: [['simulator.test'], ['simulator.test']],
      verified: ['Success', true],
      suppressed: 'COMPLAINT',
      listed: ['gone+a%c@simulator.test'],
      refused: [
        ['NotFoundException', 'NotFoundException', 404],
        ['MessageRejected', 'MessageRejected', 400],
        ['MessageRejected', 'MessageRejected', 400],
        ['ClientError', 'InvalidAction', 400],
        ['ClientError', 'SignatureDoesNotMatch', 403],
      ],
    })
    expect(answers.anymail_refused).toContain('Email address is not verified')
    const wrong = { sesv2: 'InvalidSignatureException', ses: 'SignatureDoesNotMatch' } as const
    for (const [version, refused] of answers.wrong as [keyof typeof wrong, unknown][])
      expect(refused).toEqual(['ClientError', wrong[version], 403])
    for (const version of ['v1', 'v2'])
      expect(await emailOf(String(answers[version]))).toMatchObject({ to: 'bob@simulator.test', subject: 'Grüße & +' })
    for (const version of ['raw1', 'raw2'])
      expect(await emailOf(String(answers[version]))).toMatchObject({ to: 'raw@simulator.test', subject: 'Raw' })
    const sent = (await emailOf(String(answers.anymail))) as { rawMessage: string }
    expect(sent).toMatchObject({ to: 'eve@simulator.test', tag: 'orders', metadata: { kind: 'anymail' } })
    expect(Buffer.from(sent.rawMessage, 'base64').toString()).toContain('Reply-To: Help <help@simulator.test>\r\n')
  },
)

interface Run {
  code: number
  answer: Record<string, unknown>
  errors: string
}

/** Each command with a right or a wrong secret, in one process. */
async function runAws(url: string, commands: readonly (readonly string[])[], secret = key.key): Promise<Run[]> {
  const settings = { AWS_ACCESS_KEY_ID: key.accessKeyId, AWS_SECRET_ACCESS_KEY: secret, AWS_DEFAULT_REGION: 'us-east-1', AWS_PAGER: '' }
  const running = run(python, [fileOf('aws-commands.py')], { env: { ...process.env, ...settings } })
  running.child.stdin?.end(JSON.stringify(commands.map((words) => ['--endpoint-url', url, '--output', 'json', ...words])))
  const results = JSON.parse((await running).stdout) as [number, string, string][]
  return results.map(([code, output, errors], index) => {
    noteSdkCall('awscli', commands[index]?.slice(0, 2).join(' ') ?? '', code === 0 ? 'answered' : 'refused')
    return { code, answer: output.trim() === '' ? {} : (JSON.parse(output) as Record<string, unknown>), errors }
  })
}

test.skipIf(!hasAws)(
  `the AWS command line calls both versions, below /compat/ses too${hasAws ? '' : ' (there is no awscli)'}`,
  { timeout: 120_000 },
  async () => {
    const simple = 'Simple={Subject={Data=Hello},Body={Text={Data=Hi}}}'
    const address = ['--email-address', 'cli+gone@simulator.test']
    const to = 'ToAddresses=cli@simulator.test'
    const raw = { Data: Buffer.from('From: shop@simulator.test\r\nTo: cli-raw@simulator.test\r\n\r\nHi').toString('base64') }
    const message = 'Subject={Data=First},Body={Text={Data=Hi}}'
    const commands = [
      ['sesv2', 'send-email', '--from-email-address', 'shop@simulator.test', '--destination', to, '--content', simple],
      ['sesv2', 'put-suppressed-destination', ...address, '--reason', 'COMPLAINT'],
      ['sesv2', 'get-suppressed-destination', ...address],
      ['sesv2', 'list-suppressed-destinations', '--reasons', 'COMPLAINT'],
      ['sesv2', 'delete-suppressed-destination', ...address],
      ['sesv2', 'list-email-identities'],
      ['sesv2', 'get-email-identity', '--email-identity', 'simulator.test'],
      ['sesv2', 'get-account'],
      ['ses', 'send-email', '--from', 'shop@simulator.test', '--destination', to, '--message', message],
      ['ses', 'send-raw-email', '--raw-message', JSON.stringify(raw)],
      ['ses', 'get-send-quota'],
      ['ses', 'get-account-sending-enabled'],
      ['ses', 'list-identities'],
      ['ses', 'get-identity-verification-attributes', '--identities', 'simulator.test'],
    ]
    const results = await runAws(service.url, commands)
    expect(results.map(({ code, errors }) => [code, errors])).toEqual(commands.map(() => [0, '']))
    const [sent, , shown, listed, , domains, domain, account, first, rawSent, quota, enabled, identities, verified] = results.map(
      ({ answer }) => answer,
    )
    expect(await emailOf(String(sent?.MessageId))).toMatchObject({ to: 'cli@simulator.test', subject: 'Hello' })
    expect(await emailOf(String(first?.MessageId))).toMatchObject({ to: 'cli@simulator.test', subject: 'First' })
    expect(await emailOf(String(rawSent?.MessageId))).toMatchObject({ to: 'cli-raw@simulator.test' })
    expect(shown).toMatchObject({ SuppressedDestination: { EmailAddress: 'cli+gone@simulator.test', Reason: 'COMPLAINT' } })
    expect(listed).toMatchObject({ SuppressedDestinationSummaries: [{ EmailAddress: 'cli+gone@simulator.test' }] })
    expect(domains).toMatchObject({ EmailIdentities: [{ IdentityName: 'simulator.test' }] })
    expect([domain, account, enabled]).toMatchObject([{ VerifiedForSendingStatus: true }, { SendingEnabled: true }, { Enabled: true }])
    expect(quota).toMatchObject({ Max24HourSend: -1 })
    expect(identities).toEqual({ Identities: ['simulator.test'] })
    expect(verified).toMatchObject({ VerificationAttributes: { 'simulator.test': { VerificationStatus: 'Success' } } })
    for (const { code, errors } of await runAws(service.url, commands, 'wrong')) {
      expect(code).toBe(254)
      expect(errors).toMatch(/\((InvalidSignatureException|SignatureDoesNotMatch)\)/)
    }
    await service.command('secret', 'rotate', '--json')
    const below = [
      ['ses', 'get-send-quota'],
      ['sesv2', 'get-account'],
    ]
    const [again, rotated] = await runAws(`${service.url}/compat/ses`, below)
    expect(again?.answer).toMatchObject({ Max24HourSend: -1 })
    expect(rotated?.answer).toMatchObject({ SendingEnabled: true })
  },
)

test.skipIf(!hasSymfony)(
  `Symfony's mailer for Amazon SES sends${hasSymfony ? '' : ' (there is no php-symfony-amazon-mailer)'}`,
  { timeout: 60_000 },
  async () => {
    const { stdout } = await run('/usr/bin/php', [fileOf('symfony-ses-send.php'), service.url, key.accessKeyId, key.key])
    const { calls, ...sent } = JSON.parse(stdout) as { calls: [string, CallEnd][]; [name: string]: unknown }
    noteSdkCalls('php-symfony-amazon-mailer', calls)
    for (const name of ['SesApiAsyncAwsTransport', 'SesHttpAsyncAwsTransport']) {
      const shown = (await emailOf(String(sent[name]))) as { rawMessage: string }
      expect(shown).toMatchObject({ to: `${name}@simulator.test`, subject: 'From Symfony: ü' })
      expect(Buffer.from(shown.rawMessage, 'base64').toString()).toContain('Reply-To: help@simulator.test\r\n')
      expect(sent[`${name}-wrong`]).toContain('does not match')
    }
  },
)
