/**
 * The methods of each SDK in the subset of its vendor's API that Postrider serves. `npm run compat` fails for a method that no test drives
 * with success and with a refusal, and a test fails for an endpoint that no SDK calls.
 */
import { mailgunApi } from '../../src/http/mailgun-endpoints.ts'
import { postmarkApi } from '../../src/http/postmark-endpoints.ts'
import { resendApi } from '../../src/http/resend-endpoints.ts'
import { sendgridApi } from '../../src/http/sendgrid-endpoints.ts'
import { sesApi } from '../../src/http/ses-endpoints.ts'
import type { VendorApi } from '../../src/http/vendor-api.ts'

export interface ServedSdk {
  /** The npm package, or the Debian package. */
  name: string
  from: 'npm' | 'debian'
  api: VendorApi
  /** With the endpoints that the method calls, without the vendor's name; empty: the method makes no request. */
  methods: Readonly<Record<string, readonly string[]>>
}

/** Endpoints that refuse every request, in the vendor's form. */
export const refusingEndpoints: ReadonlySet<string> = new Set([
  'ses.emails.sendBulk',
  'sendgrid.blocks.delete',
  'sendgrid.invalid_emails.delete',
])

/** Methods of a further SDK of the vendor, which calls no other endpoints. */
const same = (...names: readonly string[]): ServedSdk['methods'] => Object.fromEntries(names.map((name) => [name, []]))

const mailgunLists = ['bounces', 'complaints', 'unsubscribes']
const sendgridPaths = sendgridApi.endpoints
  .filter(({ name }) => !refusingEndpoints.has(name))
  .flatMap(({ methods, path, name }) => methods.map((method) => [`${method} ${path}`, [name.slice('sendgrid.'.length)]] as const))

const sesActions = ['send_email', 'send_raw_email', 'get_send_quota', 'get_account_sending_enabled', 'list_identities']
const sesv2Actions = [
  'send_email',
  'put_suppressed_destination',
  'get_suppressed_destination',
  'delete_suppressed_destination',
  'list_suppressed_destinations',
  'get_email_identity',
  'get_account',
]
const dashed = (name: string) => name.replaceAll('_', '-')

export const servedSdks: readonly ServedSdk[] = [
  {
    name: 'resend',
    from: 'npm',
    api: resendApi,
    methods: {
      'emails.send': ['emails.send'],
      'emails.create': ['emails.send'],
      'emails.get': ['emails.get'],
      'emails.list': ['emails.list'],
      'emails.update': ['emails.update'],
      'emails.cancel': ['emails.cancel'],
      'batch.send': ['emails.batch'],
      'batch.create': ['emails.batch'],
      'domains.create': ['domains.create'],
      'domains.list': ['domains.list'],
      'domains.get': ['domains.get'],
      'domains.verify': ['domains.verify'],
      'domains.remove': ['domains.delete'],
      'suppressions.add': ['suppressions.add'],
      'suppressions.list': ['suppressions.list'],
      'suppressions.get': ['suppressions.get'],
      'suppressions.remove': ['suppressions.remove'],
      'suppressions.batch.add': ['suppressions.batch.add'],
      'suppressions.batch.remove': ['suppressions.batch.remove'],
      'webhooks.create': ['webhooks.create'],
      'webhooks.list': ['webhooks.list'],
      'webhooks.get': ['webhooks.get'],
      'webhooks.update': ['webhooks.update'],
      'webhooks.remove': ['webhooks.delete'],
      'webhooks.rotateSigningSecret': ['webhooks.rotate'],
      'webhooks.verify': [],
    },
  },
  {
    name: 'postmark',
    from: 'npm',
    api: postmarkApi,
    methods: {
      sendEmail: ['email'],
      sendEmailBatch: ['email.batch'],
      getOutboundMessages: ['messages.outbound'],
      getOutboundMessageDetails: ['messages.details'],
      getOutboundMessageDump: ['messages.dump'],
      getBounces: ['bounces.list'],
      getBounce: ['bounces.get'],
      activateBounce: ['bounces.activate'],
      getSuppressions: ['suppressions.dump'],
      createSuppressions: ['suppressions.create'],
      deleteSuppressions: ['suppressions.delete'],
      createWebhook: ['webhooks.create'],
      getWebhooks: ['webhooks.list'],
      getWebhook: ['webhooks.get'],
      editWebhook: ['webhooks.edit'],
      deleteWebhook: ['webhooks.delete'],
    },
  },
  { name: '@sendgrid/mail', from: 'npm', api: sendgridApi, methods: { send: ['mail.send'], sendMultiple: ['mail.send'] } },
  { name: '@sendgrid/client', from: 'npm', api: sendgridApi, methods: Object.fromEntries(sendgridPaths) },
  {
    name: 'mailgun.js',
    from: 'npm',
    api: mailgunApi,
    methods: {
      'messages.create': ['messages.send'],
      'messages.create (MIME)': ['messages.mime'],
      'events.get': ['events.list', 'events.page'],
      ...Object.fromEntries(
        mailgunLists.flatMap((list) => [
          [`suppressions.list (${list})`, [`${list}.list`]],
          [`suppressions.get (${list})`, [`${list}.get`]],
          [`suppressions.create (${list})`, [`${list}.add`]],
          [`suppressions.destroy (${list})`, [`${list}.delete`]],
          [`suppressions.destroyAll (${list})`, [`${list}.clear`]],
        ]),
      ),
      // Earlier versions of the SDK call /v3.
      'domains.list': ['v3.domains.list', 'v4.domains.list'],
      'domains.get': ['v3.domains.get', 'v4.domains.get'],
      'webhooks.list': ['webhooks.list'],
      'webhooks.get': ['webhooks.get'],
      'webhooks.create': ['webhooks.create'],
      'webhooks.update': ['webhooks.update'],
      'webhooks.destroy': ['webhooks.delete'],
    },
  },
  {
    name: '@aws-sdk/client-sesv2',
    from: 'npm',
    api: sesApi,
    methods: {
      SendEmail: ['emails.send'],
      PutSuppressedDestination: ['suppressions.put'],
      GetSuppressedDestination: ['suppressions.get'],
      DeleteSuppressedDestination: ['suppressions.delete'],
      ListSuppressedDestinations: ['suppressions.list'],
      ListEmailIdentities: ['identities.find'],
      GetEmailIdentity: ['identities.get'],
      GetAccount: ['account.get'],
    },
  },
  {
    name: '@aws-sdk/client-ses',
    from: 'npm',
    api: sesApi,
    methods: {
      SendEmail: ['query'],
      SendRawEmail: ['query'],
      GetSendQuota: ['query'],
      GetAccountSendingEnabled: ['query'],
      ListIdentities: ['query'],
      GetIdentityVerificationAttributes: ['query'],
    },
  },
  { name: 'nodemailer', from: 'npm', api: sesApi, methods: same('sendMail', 'verify') },
  {
    name: 'python3-boto3',
    from: 'debian',
    api: sesApi,
    methods: {
      ...same(...sesv2Actions.map((name) => `sesv2.${name}`), ...sesActions.map((name) => `ses.${name}`)),
      'ses.get_identity_verification_attributes': [],
      // Versions before 2026 read a path of its own.
      'sesv2.list_email_identities': ['identities.list'],
    },
  },
  {
    name: 'awscli',
    from: 'debian',
    api: sesApi,
    methods: same(
      ...[...sesv2Actions, 'list_email_identities'].map((name) => `sesv2 ${dashed(name)}`),
      ...[...sesActions, 'get_identity_verification_attributes'].map((name) => `ses ${dashed(name)}`),
    ),
  },
  { name: 'python3-django-anymail', from: 'debian', api: mailgunApi, methods: same('mailgun', 'postmark', 'sendgrid', 'amazon_ses') },
  {
    name: 'ruby-postmark',
    from: 'debian',
    api: postmarkApi,
    methods: same(
      'deliver',
      'deliver_in_batches',
      'messages',
      'get_messages',
      'get_messages_count',
      'get_message',
      'dump_message',
      'bounces',
      'get_bounces',
      'get_bounce',
      'activate_bounce',
      'dump_suppressions',
      'create_suppressions',
      'delete_suppressions',
      'create_webhook',
      'get_webhooks',
      'get_webhook',
      'update_webhook',
      'delete_webhook',
    ),
  },
  { name: 'php-symfony-mailgun-mailer', from: 'debian', api: mailgunApi, methods: same('MailgunApiTransport', 'MailgunHttpTransport') },
  { name: 'php-symfony-postmark-mailer', from: 'debian', api: postmarkApi, methods: same('PostmarkApiTransport') },
  { name: 'php-symfony-sendgrid-mailer', from: 'debian', api: sendgridApi, methods: same('SendgridApiTransport') },
  {
    name: 'php-symfony-amazon-mailer',
    from: 'debian',
    api: sesApi,
    methods: same('SesApiAsyncAwsTransport', 'SesHttpAsyncAwsTransport'),
  },
]
