/**
 * Serves the MTA-STS policy of the return-path name (RFC 8461 section 3.2) under its own host name only, which serves nothing else. So the
 * policy is never another name's, and the host has no dashboard, API or links.
 */
import type { FastifyInstance } from 'fastify'
import type { Log } from '#base'
import type { ServedPolicy } from '#mta-sts'
import { hostNameOf } from './request-target.ts'

export interface StsPolicyDeps {
  servedPolicy: ServedPolicy
  log: Log
}

const path = '/.well-known/mta-sts.txt'
const plain = 'text/plain; charset=utf-8'

export function serveStsPolicy(app: FastifyInstance, { servedPolicy, log }: StsPolicyDeps): void {
  app.addHook('onRequest', async (request, reply) => {
    const isPolicy = !request.is404 && request.routeOptions.url === path
    const isHost = hostNameOf(request) === servedPolicy.host
    return isPolicy === isHost ? undefined : reply.code(404).type(plain).send('not found\n')
  })

  app.route({
    method: ['GET', 'HEAD'],
    url: path,
    handler: async (_request, reply) => {
      try {
        const text = await servedPolicy.find()
        if (text === undefined) return await reply.code(404).type(plain).send('not found\n')
        return await reply.header('cache-control', 'no-store').type(plain).send(text)
      } catch (error) {
        log.warn({ err: error }, 'cannot read the stage of the MTA-STS policy')
        return reply.code(503).type(plain).send('try again later\n')
      }
    },
  })
}
