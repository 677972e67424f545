/**
 * Sign-in with the identity provider: the begin, from the sign-in page, and the return, by a link of the identity provider. A failure is a page
 * that names the reason and leads back to the sign-in page.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '#base'
import type { AccountChanges, Session } from '#members'
import type { OpenId } from '#openid'
import { type DashboardContext, type DashboardDeps, maxBodyOctets } from './dashboard-context.ts'
import { documentHeaders, messagePage } from './dashboard-files.ts'
import type { OpenIdBeginResponse, OpenIdResponse } from './dashboard-responses.ts'
import { setDeviceCookie, setSessionCookie, setTicketCookie, ticketCookie } from './dashboard-session.ts'

/** Within /dashboard/api, for pages of the dashboard only. */
export function serveOpenIdBegin(api: FastifyInstance, context: DashboardContext, { openId, config }: DashboardDeps): void {
  api.get('/openid', async (request, reply) => context.answer<OpenIdResponse>(request, reply, { name: openId?.name ?? null }))
  api.post('/openid/begin', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    context.tryingFrom(request)
    const { url, ticket } = await configured(openId).begin()
    setTicketCookie(request, reply, ticket, config.publicUrl)
    return context.answer<OpenIdBeginResponse>(request, reply, { url })
  })
}

const configured = (openId: OpenId | undefined): OpenId => {
  if (openId) return openId
  throw new Refusal('not_found', {
    message: 'no identity provider is configured',
    suggestion: 'Sign in with a password, or set POSTRIDER_OIDC_ISSUER',
  })
}

/** The address to which the identity provider leads browsers back. */
export function serveOpenIdReturn(app: FastifyInstance, context: DashboardContext, deps: DashboardDeps): void {
  const { openId, sessions, config } = deps
  const signInNoted = async (
    request: FastifyRequest,
    tx: Parameters<DashboardContext['recordAction']>[0],
    session: Session,
    changes: AccountChanges,
  ) => {
    const { address: name, tenantId, role } = session
    const record = (action: string, data: Record<string, unknown>) => context.recordAction(tx, request, { name, tenantId }, action, data)
    if (changes.isNew) await record('members.add', { address: name, role, by: 'openid' })
    else if (changes.formerRole !== undefined) await record('members.change-role', { from: changes.formerRole, to: role, by: 'openid' })
    if (changes.isBound) await record('members.bind-account', { issuer: config.oidcIssuer?.href })
    await record('sessions.begin', { by: 'openid' })
  }

  /** Starts the session and sets its cookies; returns the refusal of a sign-in that fails. */
  const finish = async (request: FastifyRequest, reply: FastifyReply): Promise<Refusal | undefined> => {
    try {
      context.tryingFrom(request)
      const ticket = ticketCookie(request, config.publicUrl)
      setTicketCookie(request, reply, '', config.publicUrl)
      const account = await configured(openId).finish(queryOf(request.url), ticket)
      const signedIn = await sessions.signInWithAccount(account, (tx, session, changes) => signInNoted(request, tx, session, changes))
      setSessionCookie(request, reply, signedIn.token, config.publicUrl)
      setDeviceCookie(request, reply, signedIn.device, config.publicUrl)
      return undefined
    } catch (error) {
      if (error instanceof Refusal) return error
      throw error
    }
  }

  app.get('/sign-in/openid', async (request, reply) => {
    const refusal = await finish(request, reply)
    request.refusal = refusal ?? null
    if (refusal) return showFailure(reply, refusal)
    return reply.headers({ ...documentHeaders, 'cache-control': 'no-store' }).redirect('/', 303)
  })
}

const queryOf = (url: string) => url.slice(url.indexOf('?') + 1 || url.length)

const showFailure = (reply: FastifyReply, { status, message, suggestion }: Refusal): FastifyReply =>
  messagePage(reply, status, {
    title: 'Sign-in failed',
    paragraphs: [`${sentence(message)}.`, `${sentence(suggestion)}.`],
    links: [['/sign-in', 'Sign in']],
  })

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
