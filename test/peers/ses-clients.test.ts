/** Debian's clients of Amazon SES against the whole program: boto3, django-anymail and the AWS command line, also after a rotation of the secret. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
const run = promisify(execFile)

let service: ServiceProcess
let key: { key: string; accessKeyId: string }
beforeAll(async () => {
  if (!hasPython && !hasAws) return
  service = await startServiceProcess({ POSTRIDER_RATE_LIMIT: '1000', POSTRIDER_SEND_LIMIT: 'unlimited' })
  key = (await service.command('key', 'create', '--type', 'test', '--format', 'ses', '--json')) as unknown as typeof key
}, 90_000)
afterAll(() => service?.[Symbol.asyncDispose]())

const emailOf = async (id: string) => (await service.call('GET', `/emails/${id}?expand=raw`, undefined, service.testKey)).body.data

/** The answers of boto3 and django-anymail. */
async function answersOf(url: string): Promise<Record<string, unknown>> {
  const script = new URL('ses-clients.py', import.meta.url).pathname
  const { stdout } = await run('/usr/bin/python3', [script, url, key.accessKeyId, key.key])
  return JSON.parse(stdout) as Record<string, unknown>
}

test.skipIf(!hasPython)(
  `boto3 and django-anymail call both versions${hasPython ? '' : ' (python3-boto3 or python3-django-anymail is missing)'}`,
  { timeout: 60_000 },
  async () => {
    const answers = await answersOf(service.url)
    expect(answers).toMatchObject({
      account: 1000,
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
    for (const version of ['v1', 'v2'])
      expect(await emailOf(String(answers[version]))).toMatchObject({ to: 'bob@simulator.test', subject: 'Grüße & +' })
    for (const version of ['raw1', 'raw2'])
      expect(await emailOf(String(answers[version]))).toMatchObject({ to: 'raw@simulator.test', subject: 'Raw' })
    const sent = (await emailOf(String(answers.anymail))) as { rawMessage: string }
    expect(sent).toMatchObject({ to: 'eve@simulator.test', tag: 'orders', metadata: { kind: 'anymail' } })
    expect(Buffer.from(sent.rawMessage, 'base64').toString()).toContain('Reply-To: Help <help@simulator.test>\r\n')
  },
)

test.skipIf(!hasAws)(
  `the AWS command line sends, below /compat/ses too${hasAws ? '' : ' (there is no awscli)'}`,
  { timeout: 60_000 },
  async () => {
    const call = async (url: string, ...words: string[]) => {
      const env = {
        ...process.env,
        AWS_ACCESS_KEY_ID: key.accessKeyId,
        AWS_SECRET_ACCESS_KEY: key.key,
        AWS_DEFAULT_REGION: 'us-east-1',
        AWS_PAGER: '',
      }
      const { stdout } = await run(aws, ['--endpoint-url', url, '--output', 'json', ...words], { env })
      return JSON.parse(stdout) as { MessageId: string; Max24HourSend: number }
    }
    const simple = 'Simple={Subject={Data=Hello},Body={Text={Data=Hi}}}'
    const message = ['--from-email-address', 'shop@simulator.test', '--destination', 'ToAddresses=cli@simulator.test', '--content', simple]
    const { MessageId } = await call(service.url, 'sesv2', 'send-email', ...message)
    expect(await emailOf(MessageId)).toMatchObject({ to: 'cli@simulator.test', subject: 'Hello' })
    expect(await call(`${service.url}/compat/ses`, 'ses', 'get-send-quota')).toMatchObject({ Max24HourSend: -1 })
    await service.command('secret', 'rotate', '--json')
    expect(await call(`${service.url}/compat/ses`, 'sesv2', 'get-account')).toMatchObject({ SendingEnabled: true })
  },
)
