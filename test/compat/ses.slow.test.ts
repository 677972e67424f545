/** The unmodified AWS SDKs `client-sesv2` and `client-ses`, and nodemailer's transport, against the service: each served method and its errors. */
import {
  DeleteSuppressedDestinationCommand,
  GetAccountCommand,
  GetEmailIdentityCommand,
  GetSuppressedDestinationCommand,
  ListEmailIdentitiesCommand,
  ListSuppressedDestinationsCommand,
  PutSuppressedDestinationCommand,
  SendBulkEmailCommand,
  SendEmailCommand,
  type SendEmailCommandInput,
  SESv2Client,
} from '@aws-sdk/client-sesv2'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, startService } from '../support/in-process-service.ts'

let service: Service
let client: SESv2Client
interface Key {
  accessKeyId: string
  key: string
}
const urlOf = ({ port } = service, path = '') => `http://127.0.0.1:${port}${path}`
const makeKey = async (on = service, asked: object = {}) => {
  const made = await on.call('POST', '/credentials', { key: on.testKey, body: { name: 'ses', type: 'api', mode: 'test', format: 'ses', ...asked } })
  expect(made.status).toBe(201)
  return made.body.data as Key
}
const clientOf = ({ accessKeyId, key }: Key, endpoint = urlOf()) =>
  new SESv2Client({ endpoint, region: 'eu-central-1', credentials: { accessKeyId, secretAccessKey: key }, maxAttempts: 1 })
beforeAll(async () => {
  service = await startService({ rateLimit: null, sendLimit: null, roles: ['delivery'] })
  await service.addDomain(service.tenantId, 'shop.test')
  client = clientOf(await makeKey())
})
afterAll(() => service.stop())

test('x', async () => {
  const sent = await client.send(new SendEmailCommand({
    FromEmailAddress: 'Shop <orders@shop.test>',
    Destination: { ToAddresses: ['Ann <ann@one.example>'] },
    Content: { Simple: { Subject: { Data: 'Hello' }, Body: { Html: { Data: '<p>Hi</p>' } } } },
  }))
  console.log(sent)
  console.log(await client.send(new GetAccountCommand({})))
  console.log(await client.send(new ListEmailIdentitiesCommand({})))
  console.log(await client.send(new GetEmailIdentityCommand({ EmailIdentity: 'shop.test'})))
  console.log(await client.send(new PutSuppressedDestinationCommand({ EmailAddress: 'a@b.example', Reason: 'COMPLAINT'})))
  console.log(await client.send(new ListSuppressedDestinationsCommand({ PageSize: 1, StartDate: new Date(0)})))
  console.log(await client.send(new GetSuppressedDestinationCommand({ EmailAddress: 'a@b.example'})))
})
