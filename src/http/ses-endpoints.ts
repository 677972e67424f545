/**
 * The API of Amazon SES: at the root for requests with an AWS signature, and under /compat/ses. Version 2 has paths; version 1 is
 * `POST /` with a form.
 */
import Type from 'typebox'
import type { Credential } from '#credentials'
import {
  isPresigned,
  noSuchIdentity,
  readSesEmail,
  readSesIdentityFilter,
  readSesPage,
  readSesSuppression,
  readSesSuppressionPage,
  type SesIdentityPage,
  SesRefusal,
  sesAccount,
  sesFailure,
  sesIdentity,
  sesIdentityItem,
  sesSuppressed,
  sesSuppression,
  sesToken,
} from '#ses'
import { listSuppressionsByAddress } from '#suppressions'
import { domainsBeyond, quotaOf } from './ses-account.ts'
import { authenticateSes } from './ses-authentication.ts'
import { sesQueryEndpoint } from './ses-query.ts'
import { sendSesMail } from './ses-send.ts'
import type { VendorApi, VendorDeps, VendorEndpoint } from './vendor-api.ts'
import { addToList, causesOf, findListed, listsOf, removeFromLists } from './vendor-lists.ts'

const base = '/v2/email'
const done = { data: {} }

const Texts = Type.Array(Type.String(), { maxItems: 50 })
const Content = Type.Object({ Data: Type.String(), Charset: Type.String() })
const Pair = Type.Object({ Name: Type.String(), Value: Type.String() })
const SendEmail = Type.Object({
  FromEmailAddress: Type.String(),
  Destination: Type.Object({ ToAddresses: Texts, CcAddresses: Texts, BccAddresses: Texts }),
  ReplyToAddresses: Texts,
  EmailTags: Type.Array(Pair, { maxItems: 50 }),
  Content: Type.Object({
    Raw: Content,
    Simple: Type.Object({
      Subject: Content,
      Body: Type.Object({ Text: Content, Html: Content }),
      Headers: Type.Array(Pair, { maxItems: 50 }),
      Attachments: Type.Array(
        Type.Object({
          RawContent: Type.String(),
          FileName: Type.String(),
          ContentType: Type.String(),
          ContentDisposition: Type.String(),
          ContentId: Type.String(),
          ContentTransferEncoding: Type.String(),
        }),
        { maxItems: 100 },
      ),
    }),
  }),
})

const sendEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['POST'],
    path: `${base}/outbound-emails`,
    name: 'ses.emails.send',
    summary: 'Send an email, simple or raw',
    permission: 'emails:send',
    body: SendEmail,
    sends: true,
    async answer({ body, credential }, deps) {
      const { id, sent } = await sendSesMail(readSesEmail(body, credential.mode), credential, deps)
      return { data: { MessageId: id }, sent }
    },
  },
  {
    methods: ['POST'],
    path: `${base}/outbound-bulk-emails`,
    name: 'ses.emails.sendBulk',
    summary: 'Refused: bulk emails have templates',
    permission: 'emails:send',
    async answer() {
      throw new SesRefusal(
        'badRequest',
        'DefaultContent.Template is not served: render the messages, and call SendEmail for each (docs/ses-api.md)',
      )
    },
  },
]

const notSuppressed = (address: string) =>
  new SesRefusal('notFound', `Email address ${address.slice(0, 320)} does not exist on your suppression list.`)

const suppressionEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['PUT'],
    path: `${base}/suppression/addresses`,
    name: 'ses.suppressions.put',
    summary: 'Suppress an address',
    permission: 'suppressions:manage',
    body: Type.Object({ EmailAddress: Type.String(), Reason: Type.String() }),
    async answer({ body, credential }, deps) {
      await addToList(readSesSuppression(body), credential, deps)
      return done
    },
  },
  {
    methods: ['GET'],
    path: `${base}/suppression/addresses`,
    name: 'ses.suppressions.list',
    summary: 'List suppressed addresses',
    permission: 'suppressions:manage',
    async answer({ query, credential }, deps) {
      const { size, beyond, kinds, after, before } = readSesSuppressionPage(query)
      const wanted = { beyond, kinds, after, before, limit: size + 1 }
      const found = await listSuppressionsByAddress(deps.db, (await listsOf(credential, deps)).all, wanted)
      const page = found.slice(0, size)
      const last = found.length > size ? page.at(-1) : undefined
      return { data: { SuppressedDestinationSummaries: page.map(sesSuppressed), ...(last ? { NextToken: sesToken(last.address) } : {}) } }
    },
  },
  {
    methods: ['GET'],
    path: `${base}/suppression/addresses/:email`,
    name: 'ses.suppressions.get',
    summary: 'Get a suppressed address',
    permission: 'suppressions:manage',
    async answer({ params, credential }, deps) {
      const { email = '' } = params
      const entry = await findListed(email, credential, deps)
      if (!entry) throw notSuppressed(email)
      return { data: sesSuppression(entry, (await causesOf([entry], deps))(entry)) }
    },
  },
  {
    methods: ['DELETE'],
    path: `${base}/suppression/addresses/:email`,
    name: 'ses.suppressions.delete',
    summary: 'Remove an address from the list',
    permission: 'suppressions:manage',
    async answer({ params, credential }, deps) {
      const { email = '' } = params
      if (!(await removeFromLists(email, credential, deps))) throw notSuppressed(email)
      return done
    },
  },
]

async function listIdentities(wanted: SesIdentityPage, credential: Credential, deps: VendorDeps) {
  const found = await domainsBeyond(credential, wanted, deps)
  const page = found.slice(0, wanted.size)
  const last = found.length > wanted.size ? page.at(-1) : undefined
  return { data: { EmailIdentities: page.map(sesIdentityItem), ...(last ? { NextToken: sesToken(last.name) } : {}) } }
}

const accountEndpoints: readonly VendorEndpoint[] = [
  {
    methods: ['GET'],
    path: `${base}/identities`,
    name: 'ses.identities.list',
    summary: 'List sending domains, for SDKs before 2026',
    permission: 'domains:manage',
    answer: ({ query, credential }, deps) => listIdentities(readSesPage(query), credential, deps),
  },
  {
    methods: ['POST'],
    path: `${base}/list-identities`,
    name: 'ses.identities.find',
    summary: 'List sending domains',
    permission: 'domains:manage',
    reads: true,
    answer: ({ body, credential }, deps) => listIdentities(readSesIdentityFilter(body), credential, deps),
  },
  {
    methods: ['GET'],
    path: `${base}/identities/:identity`,
    name: 'ses.identities.get',
    summary: 'Get a sending domain',
    permission: 'domains:manage',
    async answer({ params, credential }, { shownDomains }) {
      const { identity = '' } = params
      const found = (await shownDomains.list(credential.tenantId)).find(({ name }) => name === identity.toLowerCase())
      if (!found) throw noSuchIdentity(identity)
      return { data: sesIdentity(await shownDomains.get(found.uuid, credential.tenantId)) }
    },
  },
  {
    methods: ['GET'],
    path: `${base}/account`,
    name: 'ses.account.get',
    summary: 'Get the quotas of the key',
    permission: 'any key',
    answer: async ({ credential }, deps) => ({ data: sesAccount(await quotaOf(credential, deps), credential.mode) }),
  },
]

const awsSignature = /^\s*AWS4-/i
/** Version 1 has one path; all others are of version 2, served or not. */
const protocolOf = (path: string) => (path === '' || path === '/' ? 'query' : 'rest')

export const sesApi: VendorApi = {
  name: 'ses',
  page: 'docs/ses-api.md',
  isAddressed: ({ authorization }, _path, url) => (authorization === undefined ? isPresigned(url) : awsSignature.test(authorization)),
  authenticate: authenticateSes,
  requestIdHeader: 'x-amzn-requestid',
  failure: (refusal, { path, requestId, isUnknownPath }) => sesFailure(refusal, { protocol: protocolOf(path), requestId, isUnknownPath }),
  endpoints: [...sendEndpoints, ...suppressionEndpoints, ...accountEndpoints, sesQueryEndpoint],
}
