/** Version 1 of SES's API: one endpoint, whose form names the action, and answers in XML. */
import type { Credential, Permission } from '#credentials'
import {
  readIdentityNames,
  readIdentityPage,
  readQueryAction,
  readQueryForm,
  readSesQueryEmail,
  readSesQueryRawEmail,
  refuseParameters,
  SesRefusal,
  sesToken,
  verificationAttributes,
  type XmlValue,
  xmlResult,
  xmlType,
} from '#ses'
import { tenantScope } from './authorize.ts'
import { domainsBeyond, shownQuota } from './ses-account.ts'
import { sendSesMail } from './ses-send.ts'
import type { VendorAnswer, VendorCall, VendorDeps, VendorEndpoint } from './vendor-api.ts'

interface Answered {
  result: XmlValue
  sent?: VendorAnswer['sent']
}

interface Action {
  permission: Permission | 'any key'
  answer(call: VendorCall, deps: VendorDeps): Promise<Answered>
}

const send = async (mail: Parameters<typeof sendSesMail>[0], credential: Credential, deps: VendorDeps): Promise<Answered> => {
  const { id, sent } = await sendSesMail(mail, credential, deps)
  return { result: { MessageId: id }, sent }
}

/** Postrider has no identities that are addresses. */
async function listIdentities({ body, credential }: VendorCall, deps: VendorDeps): Promise<Answered> {
  const { domains, ...wanted } = readIdentityPage(body)
  const found = domains ? await domainsBeyond(credential, wanted, deps) : []
  const page = found.slice(0, wanted.size)
  const last = found.length > wanted.size ? page.at(-1) : undefined
  return { result: { Identities: { member: page.map(({ name }) => name) }, ...(last ? { NextToken: sesToken(last.name) } : {}) } }
}

const actions: Readonly<Record<string, Action>> = {
  SendEmail: {
    permission: 'emails:send',
    answer: ({ body, credential }, deps) => send(readSesQueryEmail(body, credential.mode), credential, deps),
  },
  SendRawEmail: {
    permission: 'emails:send',
    answer: ({ body, credential }, deps) => send(readSesQueryRawEmail(body, credential.mode), credential, deps),
  },
  GetSendQuota: {
    permission: 'any key',
    async answer({ body, credential }, deps) {
      refuseParameters(body)
      return { result: await shownQuota(credential, deps) }
    },
  },
  GetAccountSendingEnabled: {
    permission: 'any key',
    async answer({ body }) {
      refuseParameters(body)
      return { result: { Enabled: true } }
    },
  },
  ListIdentities: { permission: 'domains:manage', answer: listIdentities },
  GetIdentityVerificationAttributes: {
    permission: 'domains:manage',
    async answer({ body, credential }, { shownDomains }) {
      const names = readIdentityNames(body)
      return { result: verificationAttributes(names, await shownDomains.list(credential.tenantId)) }
    },
  },
}

const formType = /^application\/x-www-form-urlencoded\s*(;|$)/i

/** The permission of the action is checked here, because the action is in the body. */
export const sesQueryEndpoint: VendorEndpoint = {
  methods: ['POST'],
  path: '/',
  name: 'ses.query',
  summary: 'An action of version 1',
  permission: 'any key',
  sends: true,
  readForm: readQueryForm,
  async answer(call, deps) {
    const { body, credential, headers } = call
    if (!formType.test(headers['content-type'] ?? ''))
      throw new SesRefusal(
        'unknownAction',
        'version 1 takes a form (application/x-www-form-urlencoded); version 2 has paths below /v2/email',
      )
    const name = readQueryAction(body)
    const action = Object.hasOwn(actions, name) ? actions[name] : undefined
    if (!action) throw new SesRefusal('unknownAction', `${name.slice(0, 60)} is not served: docs/ses-api.md lists the actions`)
    const { permission } = action
    tenantScope(credential, { permission, scope: 'organisation or tenant', takesTenant: false }, { params: {}, query: {} })
    const { result, sent } = await action.answer(call, deps)
    return { data: xmlResult(name, result, call.requestId), type: xmlType, ...(sent ? { sent } : {}) }
  },
}
