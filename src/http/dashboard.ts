/**
 * The dashboard's own endpoints (docs/dashboard.md): sign-in and sign-out, members, and an email's HTML in a page without scripts or
 * requests. The dashboard uses /v1 for everything else. All endpoints but the HTML require the dashboard's header and origin, including
 * sign-in.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type, { type Static } from 'typebox'
import { Refusal } from '#base'
import type { Tx } from '#db'
import { parseAddress } from '#mail'
import {
  addMember,
  changeRole,
  listMembers,
  removeMember,
  resetMember,
  resetSecondFactor,
  roles,
  type Session,
  SeveralMembers,
  type SignedIn,
  takesPassword,
} from '#members'
import { serveAccount } from './dashboard-account.ts'
import { serveEmailChecks } from './dashboard-checks.ts'
import { type DashboardContext, type DashboardDeps, maxBodyOctets, openDashboardContext, reader, Text } from './dashboard-context.ts'
import { serveEmailPage } from './dashboard-email.ts'
import { serveInstallation } from './dashboard-installation.ts'
import { serveOpenIdBegin, serveOpenIdReturn } from './dashboard-openid.ts'
import { type OperationDeps, serveOperation } from './dashboard-operations.ts'
import { servePrivacy } from './dashboard-privacy.ts'
import { serveWaiting } from './dashboard-queue.ts'
import type { InvitationResponse, MembersResponse, SessionResponse, SignInLinkResponse } from './dashboard-responses.ts'
import { isFromOurPages, type SignedInMember, sessionCookie, setDeviceCookie, setSessionCookie } from './dashboard-session.ts'
import { serveTemplatePreview } from './dashboard-templates.ts'
import { serveSecondFactor } from './dashboard-two-factor.ts'
import { serveUse } from './dashboard-use.ts'
import { previewDocument, previewHeaders } from './email-preview.ts'
import { connectionOf } from './v1/caller-connection.ts'
import { refuseHiddenContent } from './v1/content-access.ts'
import type { ApiDeps } from './v1/define-endpoint.ts'
import { retrieveEmail } from './v1/email-details.ts'

/** null: the organisation. */
const OneTenant = Type.Optional(Type.Unsafe<string | null>({ type: ['string', 'null'], maxLength: 64 }))
const SignIn = Type.Object({ address: Text, password: Text, code: Type.Optional(Text), tenantId: OneTenant })
const Link = Type.Object({ token: Text })
const LinkPassword = Type.Object({ token: Text, password: Text, code: Type.Optional(Text) })
const AnyRole = Type.Unsafe<(typeof roles)[number]>({ type: 'string', enum: roles })
const NewMember = Type.Object({ address: Text, role: AnyRole, tenantId: Type.Optional(Type.String({ maxLength: 64 })) })
const MembersQuery = Type.Object({ search: Type.Optional(Text) })
const OneMember = Type.Object({ address: Text, tenantId: OneTenant })
const MemberRole = Type.Object({ address: Text, tenantId: OneTenant, role: AnyRole })

const shown = ({ address, role, tenantId }: Pick<Session, 'address' | 'role' | 'tenantId'>) => ({ address, role, tenantId })

const readSignIn = reader(SignIn)
const readLink = reader(Link)
const readLinkPassword = reader(LinkPassword)
const readNewMember = reader(NewMember)
const readMembersQuery = reader(MembersQuery)
const readOneMember = reader(OneMember)
const readMemberRole = reader(MemberRole)

type AllDeps = DashboardDeps & OperationDeps & ApiDeps

/** Registered under /dashboard/api, and the return of a sign-in at the identity provider. The app's error handler answers refusals. */
export async function serveDashboard(app: FastifyInstance, deps: AllDeps): Promise<void> {
  const context = openDashboardContext(deps)
  await app.register(
    async (api) => {
      api.addHook('onRequest', async (request) => {
        if (request.routeOptions.url?.endsWith('/preview')) return
        if (!isFromOurPages(request, deps.config.publicUrl))
          throw new Refusal('permission_denied', {
            message: 'only pages of the dashboard can use this path',
            suggestion: 'Open the dashboard over https or on localhost. In programs, use the API with a key',
          })
      })
      serveSignIn(api, context, deps)
      serveOpenIdBegin(api, context, deps)
      serveMembers(api, context, deps)
      serveAccount(api, context, deps)
      serveSecondFactor(api, context, deps)
      serveInstallation(api, context, deps)
      serveOperation(api, context, deps)
      serveTemplatePreview(api, context, deps)
      serveWaiting(api, context, deps)
      servePrivacy(api, context, deps)
      serveUse(api, context, deps)
      serveEmailPage(api, context, deps)
      serveEmailChecks(api, context, deps)
      servePreview(api, context, deps)
    },
    { prefix: '/dashboard/api' },
  )
  serveOpenIdReturn(app, context, deps)
}

function serveSignIn(api: FastifyInstance, context: DashboardContext, { sessions, config }: DashboardDeps): void {
  const { answer, tryingFrom } = context

  const begun = (request: FastifyRequest, reply: FastifyReply, { token, session, device }: SignedIn) => {
    setSessionCookie(request, reply, token, config.publicUrl)
    setDeviceCookie(request, reply, device, config.publicUrl)
    return answer<SessionResponse>(request, reply, { member: shown(session) })
  }

  const signInNoted =
    (request: FastifyRequest, by: 'password' | 'link') =>
    (tx: Tx, { address: name, tenantId }: Session) =>
      context.recordAction(tx, request, { name, tenantId }, 'sessions.begin', { by })

  api.get('/session', async (request, reply) => {
    const session = await sessions.find(sessionCookie(request, config.publicUrl) ?? '')
    return answer<SessionResponse>(request, reply, { member: session ? shown(session) : null })
  })

  api.post('/sign-in', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const given = readSignIn(request.body)
    try {
      const from = tryingFrom(request, given.address)
      const signedIn = await sessions.signIn({ ...given, ...from }, signInNoted(request, 'password'))
      return await begun(request, reply, signedIn)
    } catch (error) {
      if (!(error instanceof SeveralMembers)) throw error
      return answer<SessionResponse>(request, reply, { member: null, choices: error.choices })
    }
  })

  api.post('/sign-in-link', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    return answer<SignInLinkResponse>(request, reply, await sessions.ownerOfLink(readLink(request.body).token, tryingFrom(request)))
  })

  api.post('/sign-in-link/password', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const { token: signInToken, ...proof } = readLinkPassword(request.body)
    const from = tryingFrom(request)
    return begun(request, reply, await sessions.useLink({ signInToken, ...proof, ...from }, signInNoted(request, 'link')))
  })

  api.post('/sign-out', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    await sessions.end(sessionCookie(request, config.publicUrl) ?? '')
    setSessionCookie(request, reply, '', config.publicUrl)
    return answer<SessionResponse>(request, reply, { member: null })
  })
}

/** The members page, for owners. Long because each endpoint of the page is one statement. */
function serveMembers(api: FastifyInstance, context: DashboardContext, deps: DashboardDeps): void {
  const { sessions, config, db, clock, ids } = deps
  const { answer, requireOwner } = context

  const withLink = ({ member, signInToken }: Awaited<ReturnType<typeof addMember>>) => ({
    member,
    signInUrl: takesPassword(member, config.passwordSignIn) ? `${config.publicUrl}/sign-in/${signInToken}` : null,
  })

  api.get('/members', async (request, reply) => {
    const { tenantId } = await requireOwner(request)
    const { passwordSignIn } = config
    const { search } = readMembersQuery(request.query)
    const listed = await listMembers(db, { tenantId, search }, passwordSignIn)
    return answer<MembersResponse>(request, reply, { ...listed, passwordSignIn })
  })

  api.post('/members', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const owner = await requireOwner(request)
    const member = newMemberBy(owner, readNewMember(request.body))
    const made = await db.transaction(async (tx) => {
      await context.recordAction(tx, request, owner, 'members.add', { ...member }, member.tenantId)
      return addMember(tx, member, { nowMs: clock.nowMs(), ids })
    })
    return answer<InvitationResponse>(request, reply, withLink(made))
  })

  api.post('/members/reset', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const owner = await requireOwner(request)
    const { address, tenantId } = meantBy(owner, readOneMember(request.body), 'reset')
    const made = await db.transaction(async (tx) => {
      const reset = await resetMember(tx, address, tenantId, { nowMs: clock.nowMs(), ids })
      await context.recordAction(tx, request, owner, 'members.reset', { address }, reset.member.tenantId)
      return reset
    })
    sessions.forget()
    return answer<InvitationResponse>(request, reply, withLink(made))
  })

  api.post('/members/remove', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const owner = await requireOwner(request)
    const { address, tenantId } = meantBy(owner, readOneMember(request.body), 'remove')
    await db.transaction(async (tx) => {
      const removed = await removeMember(tx, address, tenantId)
      await context.recordAction(tx, request, owner, 'members.remove', { address }, removed.tenantId)
    })
    sessions.forget()
    return answer<object>(request, reply, { message: 'The member was removed' })
  })

  api.post('/members/role', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const owner = await requireOwner(request)
    const { role, ...named } = readMemberRole(request.body)
    const { address, tenantId } = meantBy(owner, named, 'change the role of')
    const member = await db.transaction(async (tx) => {
      const changed = await changeRole(tx, address, tenantId, role)
      await context.recordAction(tx, request, owner, 'members.role', { address, role }, changed.tenantId)
      return changed
    })
    sessions.forget()
    return answer<SessionResponse>(request, reply, { member })
  })

  api.post('/members/reset-second-factor', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const owner = await requireOwner(request)
    const { address, tenantId } = meantBy(owner, readOneMember(request.body), 'reset')
    const member = await db.transaction(async (tx) => {
      const reset = await resetSecondFactor(tx, address, tenantId)
      await context.recordAction(tx, request, owner, 'members.reset-second-factor', { address }, reset.tenantId)
      return reset
    })
    sessions.forget()
    return answer<SessionResponse>(request, reply, { member })
  })
}

/** An email's HTML in a frame of the dashboard. */
function servePreview(api: FastifyInstance, { requireMember }: DashboardContext, deps: AllDeps): void {
  api.get('/emails/:emailId/preview', async (request, reply) => {
    const member = await requireMember(request, 'frame')
    const { body } = await retrieveEmail.respond(
      {
        requestId: request.id,
        params: request.params,
        query: { expand: 'content' },
        body: {},
        credential: member,
        tenantId: member.tenantId,
        rate: deps.rateLimiter('preview', null),
        idempotencyKey: undefined,
        accept: undefined,
        lastEventId: undefined,
        connection: connectionOf(reply.raw),
      },
      deps,
    )
    const { data } = JSON.parse(body as string) as { data: { tenantId: string; htmlBody?: string; plainBody?: string } }
    await refuseHiddenContent(member, data.tenantId, deps)
    return reply.headers(previewHeaders).send(previewDocument(data))
  })
}

/** The member that an owner adds: of the owner's tenant, or of any tenant for an owner of the organisation. */
function newMemberBy(owner: SignedInMember, wanted: Static<typeof NewMember>) {
  const address = parseAddress(wanted.address)
  if (!address) throw new Refusal('invalid_email_format', { field: 'address', message: 'address is not an email address' })
  const tenantId = owner.tenantId ?? wanted.tenantId ?? null
  if (owner.tenantId !== null && (wanted.tenantId ?? owner.tenantId) !== owner.tenantId) throw new Refusal('tenant_mismatch')
  return { address: address.text, role: wanted.role, tenantId }
}

/**
 * The member named by an owner: of the owner's tenant, or of any tenant for an owner of the organisation. Refuses the owner's own account,
 * so that a stolen session cannot take the account over.
 */
function meantBy(owner: SignedInMember, { address, tenantId }: { address: string; tenantId?: string | null }, does: string) {
  if (owner.tenantId !== null && (tenantId === undefined ? owner.tenantId : tenantId) !== owner.tenantId)
    throw new Refusal('tenant_mismatch')
  const meant = owner.tenantId ?? tenantId
  if (address.toLowerCase() === owner.name && (meant === undefined || meant === owner.tenantId))
    throw new Refusal('validation_error', {
      field: 'address',
      message: `you cannot ${does} your own account`,
      suggestion: 'Ask another owner',
    })
  return { address, tenantId: meant }
}
