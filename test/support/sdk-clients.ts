/** The vendors' SDKs for Node, unmodified, as clients of a service; their calls are recorded for `npm run compat`. */
import { SESClient } from '@aws-sdk/client-ses'
import { SESv2Client } from '@aws-sdk/client-sesv2'
import usualSendGridClient from '@sendgrid/client'
import usualSendGridMailer from '@sendgrid/mail'
import Mailgun from 'mailgun.js'
import { ServerClient } from 'postmark'
import { Resend } from 'resend'
import { sendgridApi } from '../../src/http/sendgrid-endpoints.ts'
import type { SignedBy } from './aws-signature.ts'
import { recorded } from './sdk-calls.ts'

export type SendGridClient = typeof usualSendGridClient
export type SendGridMailer = typeof usualSendGridMailer
export type MailgunClient = ReturnType<InstanceType<typeof Mailgun>['client']>

/** The packages export one instance, whose class makes others. */
const NewSendGridClient = usualSendGridClient.constructor as new () => SendGridClient
const NewSendGridMailer = usualSendGridMailer.constructor as new () => SendGridMailer

const hasError = (answer: unknown) => typeof answer === 'object' && answer !== null && 'error' in answer && answer.error !== null

export const resendClient = (key: string, baseUrl: string): Resend =>
  recorded('resend', new Resend(key, { baseUrl }), { isRefusal: hasError })

/** `url`: with http. */
export const postmarkClient = (key: string, url: string): ServerClient =>
  recorded('postmark', new ServerClient(key, { requestHost: url.replace('http://', ''), useHttps: false }))

/** The paths of SendGrid's endpoints, those without parameters first. */
const paths = sendgridApi.endpoints
  .flatMap(({ methods, path }) => methods.map((method) => ({ method, path })))
  .sort((one, other) => one.path.split('/:').length - other.path.split('/:').length)
  .map(({ method, path }) => ({ name: `${method} ${path}`, form: new RegExp(`^${method} ${path.replace(/:\w+/g, '[^/]+')}$`) }))

/** A request's method and path as in the list of endpoints. */
function endpointOf(path: string, [asked]: readonly unknown[]): string {
  const { method, url } = (asked ?? {}) as { method?: string; url?: string }
  const called = `${method} ${url?.split('?', 1)[0]}`
  return path === 'request' ? (paths.find(({ form }) => form.test(called))?.name ?? called) : path
}

export function sendgridClient(key: string, url: string): SendGridClient {
  const made = new NewSendGridClient()
  made.setApiKey(`SG.${key}`)
  made.setDefaultRequest('baseUrl', url)
  return recorded('@sendgrid/client', made, { nameOf: endpointOf })
}

export function sendgridMailer(client: SendGridClient): SendGridMailer {
  const made = new NewSendGridMailer()
  made.setClient(client)
  return recorded('@sendgrid/mail', made)
}

/** A complete message has an endpoint of its own, and each list of suppressions too. */
function mailgunCall(path: string, [, second]: readonly unknown[]): string {
  if (path === 'messages.create') return `${path}${(second as { message?: unknown } | undefined)?.message === undefined ? '' : ' (MIME)'}`
  return path.startsWith('suppressions.') ? `${path} (${String(second)})` : path
}

export const mailgunClient = (key: string, url: string): MailgunClient =>
  recorded('mailgun.js', new Mailgun(FormData).client({ username: 'api', key, url }), { nameOf: mailgunCall })

/** The name of a command, such as `SendEmail`. */
const commandOf = (path: string, [command]: readonly unknown[]) =>
  path === 'send' ? ((command as object | undefined)?.constructor.name.replace(/Command$/, '') ?? path) : path

export const sesSettings = ({ accessKeyId, key: secretAccessKey }: SignedBy, endpoint: string) => ({
  endpoint,
  region: 'eu-central-1',
  credentials: { accessKeyId, secretAccessKey },
  maxAttempts: 1,
})

export const sesv2Client = (by: SignedBy, endpoint: string): SESv2Client =>
  recorded('@aws-sdk/client-sesv2', new SESv2Client(sesSettings(by, endpoint)), { nameOf: commandOf })
export const sesClient = (by: SignedBy, endpoint: string): SESClient =>
  recorded('@aws-sdk/client-ses', new SESClient(sesSettings(by, endpoint)), { nameOf: commandOf })
