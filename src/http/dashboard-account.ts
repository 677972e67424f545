/** The signed-in member's own account: the means of signing in, a new password, and the sessions. */
import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { signInMeansOf } from '#members'
import { type DashboardContext, type DashboardDeps, maxBodyOctets, reader, Text } from './dashboard-context.ts'
import type { AccountResponse, OwnSessionsResponse } from './dashboard-responses.ts'

const readChange = reader(Type.Object({ currentPassword: Text, password: Text, code: Type.Optional(Text) }))

export function serveAccount(api: FastifyInstance, context: DashboardContext, { sessions, db, config }: DashboardDeps): void {
  api.get('/account', async (request, reply) => {
    const { memberId } = await context.requireMember(request)
    return context.answer<AccountResponse>(request, reply, { signsInWith: await signInMeansOf(db, memberId, config.passwordSignIn) })
  })

  api.post('/password', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await context.requireMember(request)
    const { currentPassword, password, code } = readChange(request.body)
    await sessions.changePassword(
      {
        address: member.name,
        memberId: member.memberId,
        token: member.token,
        password: currentPassword,
        newPassword: password,
        code,
        ...context.tryingFrom(request, member.name),
      },
      (tx) => context.recordAction(tx, request, member, 'members.change-password', {}),
    )
    return context.answer<object>(request, reply, { message: 'The password was changed' })
  })

  api.get('/sessions', async (request, reply) => {
    const member = await context.requireMember(request)
    return context.answer<OwnSessionsResponse>(request, reply, { sessions: await sessions.listOf(member) })
  })

  api.post('/sessions/end-others', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await context.requireMember(request)
    await sessions.endOthers(member, (tx) => context.recordAction(tx, request, member, 'sessions.end-others', {}))
    return context.answer<object>(request, reply, { message: 'The other sessions have ended' })
  })
}
