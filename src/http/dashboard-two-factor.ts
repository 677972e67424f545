/** Two-factor authentication of the signed-in person: start, confirmation by a first code, new recovery codes, removal. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { beginSecondFactor, confirmSecondFactor, getSecondFactor, removeSecondFactor, renewRecoveryCodes, type SignInProof } from '#members'
import { type DashboardContext, type DashboardDeps, maxBodyOctets, reader, Text } from './dashboard-context.ts'
import type { EnrolmentResponse, RecoveryCodesResponse, SecondFactorResponse } from './dashboard-responses.ts'
import type { SignedInMember } from './dashboard-session.ts'

const readPassword = reader(Type.Object({ password: Text }))
const readCode = reader(Type.Object({ code: Text }))
const readProof = reader(Type.Object({ password: Text, code: Text }))

/** Lasting changes ask for the password again, so that a stolen session cannot take the account over. */
export function serveSecondFactor(
  api: FastifyInstance,
  context: DashboardContext,
  { db, clock, ids, secrets, sessions, config }: DashboardDeps,
): void {
  const proven = async (request: FastifyRequest, read: (body: unknown) => SignInProof): Promise<SignedInMember> => {
    const member = await context.requireMember(request)
    await sessions.proveAgain({
      ...read(request.body),
      address: member.name,
      memberId: member.memberId,
      ...context.tryingFrom(request, member.name),
    })
    return member
  }
  const facts = () => ({ nowMs: clock.nowMs(), ids, secrets })

  api.get('/second-factor', async (request, reply) => {
    const { memberId } = await context.requireMember(request)
    return context.answer<SecondFactorResponse>(request, reply, await getSecondFactor(db, memberId))
  })

  api.post('/second-factor/begin', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const { memberId } = await proven(request, readPassword)
    const issuer = `Postrider ${new URL(config.publicUrl).hostname}`
    const begun = await db.transaction((tx) => beginSecondFactor(tx, memberId, { ...facts(), issuer }))
    return context.answer<EnrolmentResponse>(request, reply, begun)
  })

  api.post('/second-factor/confirm', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await context.requireMember(request)
    context.tryingFrom(request, member.name)
    const { code } = readCode(request.body)
    const recoveryCodes = await db.transaction(async (tx) => {
      await context.recordAction(tx, request, member, 'second-factor.on', {})
      return confirmSecondFactor(tx, member.memberId, code, facts())
    })
    await sessions.endOthers(member)
    return context.answer<RecoveryCodesResponse>(request, reply, { recoveryCodes })
  })

  api.post('/second-factor/recovery-codes', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await proven(request, readProof)
    const recoveryCodes = await db.transaction(async (tx) => {
      await context.recordAction(tx, request, member, 'second-factor.recovery-codes', {})
      return renewRecoveryCodes(tx, member.memberId, { ids })
    })
    return context.answer<RecoveryCodesResponse>(request, reply, { recoveryCodes })
  })

  api.post('/second-factor/remove', { bodyLimit: maxBodyOctets }, async (request, reply) => {
    const member = await proven(request, readProof)
    await db.transaction(async (tx) => {
      await context.recordAction(tx, request, member, 'second-factor.off', {})
      await removeSecondFactor(tx, member.memberId)
    })
    return context.answer<object>(request, reply, { message: 'Two-factor authentication is off' })
  })
}
