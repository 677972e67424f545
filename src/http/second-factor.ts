/** Two-factor authentication of the signed-in person: start, confirmation by a first code, new recovery codes, removal. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { beginSecondFactor, confirmSecondFactor, getSecondFactor, type Proof, removeSecondFactor, renewRecoveryCodes } from '#members'
import { type DashboardDeps, type Desk, mostBodyOctets, reader, Text } from './desk.ts'
import type { Person } from './session.ts'

const readPassword = reader(Type.Object({ password: Text }))
const readCode = reader(Type.Object({ code: Text }))
const readProof = reader(Type.Object({ password: Text, code: Text }))

/** Lasting changes ask for the password again, so that a stolen session cannot take the account over. */
export function serveSecondFactor(api: FastifyInstance, desk: Desk, { db, clock, ids, secrets, sessions, config }: DashboardDeps): void {
  const proven = async (request: FastifyRequest, read: (body: unknown) => Proof): Promise<Person> => {
    const person = await desk.asPerson(request)
    await sessions.proveAgain({
      ...read(request.body),
      address: person.name,
      memberId: person.memberId,
      ...desk.tryingFrom(request, person.name),
    })
    return person
  }
  const facts = () => ({ nowMs: clock.nowMs(), ids, secrets })

  api.get('/second-factor', async (request, reply) => {
    const { memberId } = await desk.asPerson(request)
    return desk.answer(request, reply, await getSecondFactor(db, memberId))
  })

  api.post('/second-factor/begin', { bodyLimit: mostBodyOctets }, async (request, reply) => {
    const { memberId } = await proven(request, readPassword)
    const issuer = `Postrider ${new URL(config.publicUrl).hostname}`
    return desk.answer(request, reply, await db.transaction((tx) => beginSecondFactor(tx, memberId, { ...facts(), issuer })))
  })

  api.post('/second-factor/confirm', { bodyLimit: mostBodyOctets }, async (request, reply) => {
    const person = await desk.asPerson(request)
    desk.tryingFrom(request, person.name)
    const { code } = readCode(request.body)
    const recoveryCodes = await db.transaction(async (tx) => {
      await desk.note(tx, request, person, 'second-factor.on', {})
      return confirmSecondFactor(tx, person.memberId, code, facts())
    })
    await sessions.endOthers(person)
    return desk.answer(request, reply, { recoveryCodes })
  })

  api.post('/second-factor/recovery-codes', { bodyLimit: mostBodyOctets }, async (request, reply) => {
    const person = await proven(request, readProof)
    const recoveryCodes = await db.transaction(async (tx) => {
      await desk.note(tx, request, person, 'second-factor.recovery-codes', {})
      return renewRecoveryCodes(tx, person.memberId, { ids })
    })
    return desk.answer(request, reply, { recoveryCodes })
  })

  api.post('/second-factor/remove', { bodyLimit: mostBodyOctets }, async (request, reply) => {
    const person = await proven(request, readProof)
    await db.transaction(async (tx) => {
      await desk.note(tx, request, person, 'second-factor.off', {})
      await removeSecondFactor(tx, person.memberId)
    })
    return desk.answer(request, reply, { message: 'The second factor is off' })
  })
}
