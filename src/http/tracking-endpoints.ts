/**
 * Serves the links in mail (contract sections 11 and 18): the open pixel, the click redirect and the unsubscribe page. A track domain
 * serves only these; other hosts serve only the unsubscribe page. No keys, no envelope, no request log.
 */
import { domainToASCII } from 'node:url'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import { type Clock, type Config, type Log, Refusal } from '#base'
import type { Db } from '#db'
import {
  isPrefetch,
  openSharedUnsubscribes,
  type TokenKind,
  type Tokens,
  TooManyLookups,
  type Tracked,
  type TrackHost,
  type TrackHosts,
  type TrackingEvents,
  trimmedUrl,
  unsubscribe,
} from '#tracking'
import type { Readiness } from './readiness.ts'
import { hostNameOf } from './request-target.ts'
import { askPage, donePage, pageHeaders } from './unsubscribe-pages.ts'

export interface TrackingEndpointDeps {
  db: Db
  clock: Clock
  log: Log
  tokens: Tokens
  trackingEvents: TrackingEvents
  trackHosts: TrackHosts
  readiness: Readiness
  config: Pick<Config, 'publicUrl'>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    link?: TokenKind
  }
  interface FastifyRequest {
    /** The content of this request's link, once its signature and host are checked. */
    tracked: Tracked | null
  }
}

/** One transparent pixel: 43 octets. */
const pixel = Buffer.from('R0lGODlhAQABAPAAAAAAAAAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==', 'base64')
const plain = 'text/plain; charset=utf-8'
const maxBodyOctets = 4096
/** As in the database: longer ones would fill the buffer of opens and clicks. */
const maxUserAgentLength = 500

const answerText = (reply: FastifyReply, status: number, text: string) =>
  reply.code(status).header('cache-control', 'no-store').type(plain).send(`${text}\n`)

/** Long because it is a table of routes. */
export async function serveTrackingEndpoints(app: FastifyInstance, deps: TrackingEndpointDeps): Promise<void> {
  const { trackHosts, clock, log, readiness } = deps
  const shared = openSharedUnsubscribes()
  app.decorateRequest('tracked', null)
  app.addHook('onRequest', openHostGate(deps))

  // Asked by a proxy before it gets a certificate: docs/tracking-https.md.
  app.get('/tls/ask', async (request, reply) => {
    const { domain } = request.query as { domain?: unknown }
    if (typeof domain !== 'string') return answerText(reply, 404, 'not found')
    try {
      const track = await trackHosts.find(domain.toLowerCase())
      return await (track?.hasHttps ? answerText(reply, 200, 'a track domain') : answerText(reply, 404, 'not found'))
    } catch (error) {
      if (!(error instanceof TooManyLookups)) readiness.recordOutage(error)
      return answerText(reply, 503, 'try again later')
    }
  })

  await app.register(async (links) => {
    links.removeAllContentTypeParsers()
    // The body is accepted with any content type; an invalid type would be answered 415.
    links.addHook('preParsing', async ({ headers }) => void delete headers['content-type'])
    links.addContentTypeParser('*', { parseAs: 'string', bodyLimit: maxBodyOctets }, (_request, body, done) => done(null, body))
    links.setErrorHandler<Error & { statusCode?: number }>(async (error, request, reply) => {
      const status = (error instanceof Refusal ? error.status : error.statusCode) ?? 503
      if (status >= 500) log.error({ requestId: request.id, err: error }, 'failed to serve a link')
      return status >= 500 ? answerText(reply, 503, 'try again later') : answerText(reply, status, 'the request is unreadable')
    })

    links.route({
      method: ['GET', 'HEAD'],
      url: '/o/:token',
      config: { link: 'open' },
      handler: (request, reply) => {
        deps.trackingEvents.note(hitOf(request, clock))
        return reply.header('cache-control', 'no-store').type('image/gif').send(pixel)
      },
    })

    links.route({
      method: ['GET', 'HEAD'],
      url: '/c/:token',
      config: { link: 'click' },
      handler: (request, reply) => {
        const location = locationOf(trackedOf(request).url)
        if (location === undefined) return answerText(reply, 404, 'not found')
        deps.trackingEvents.note(hitOf(request, clock))
        return reply.code(302).headers({ location, 'cache-control': 'no-store' }).send()
      },
    })

    links.route({
      method: ['GET', 'HEAD'],
      url: '/u/:token',
      config: { link: 'unsubscribe' },
      handler: (_request, reply) => reply.headers(pageHeaders).send(askPage),
    })

    // The body is ignored: the POST itself distinguishes a person or their mail program (RFC 8058) from a scanner.
    links.post('/u/:token', { config: { link: 'unsubscribe' } }, async (request, reply) => {
      const isDone = await shared((request.params as { token: string }).token, () =>
        unsubscribe(deps.db, trackedOf(request), clock.nowMs()),
      )
      return isDone ? reply.headers(pageHeaders).send(donePage) : answerText(reply, 404, 'this link has expired')
    })
  })
}

/** Decides by host name, before anything else, which paths a request may use (docs/decisions/017-unknown-hosts.md). */
function openHostGate({ tokens, trackHosts, readiness, config }: TrackingEndpointDeps) {
  const publicHost = hostNameOf(new URL(config.publicUrl))
  const isOurs = (host: string) => host === publicHost || host === 'localhost' || ipaddr.isValid(host.replace(/^\[|\]$/g, ''))

  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const link = request.is404 ? undefined : request.routeOptions.config.link
    const host = hostNameOf(request)
    const notFound = () => answerText(reply, 404, 'not found')
    const tracked = link && tokens.read((request.params as { token: string }).token, link)
    // Without a lookup: an unknown token is not found on any host.
    if (link && !tracked) return notFound()
    if (isOurs(host)) {
      if (link && link !== 'unsubscribe') return notFound()
    } else {
      let track: TrackHost | undefined
      try {
        track = await trackHosts.find(host)
      } catch (error) {
        if (link && !(error instanceof TooManyLookups)) readiness.recordOutage(error)
        if (link) return answerText(reply, 503, 'try again later')
      }
      // A tenant's host must not serve another tenant's links. A name that the tenant has not proven to control stays that of the API too.
      if (link ? track?.tenantId !== tracked?.tenantId : track?.isVerified) return notFound()
    }
    request.tracked = tracked ?? null
    return undefined
  }
}

function trackedOf({ tracked }: FastifyRequest): Tracked {
  if (!tracked) throw new Error('a link bypassed the host check')
  return tracked
}

/** The facts of an open or a click. */
export function hitOf(request: FastifyRequest, clock: Clock): Parameters<TrackingEvents['note']>[0] {
  const { tenantId, emailId, url, kind } = trackedOf(request)
  return {
    kind: kind === 'click' ? 'click' : 'open',
    tenantId,
    emailId,
    url,
    token: (request.params as { token: string }).token,
    at: new Date(clock.nowMs()),
    ipAddress: request.ip,
    userAgent: (request.headers['user-agent'] ?? '').slice(0, maxUserAgentLength),
    isHead: request.method === 'HEAD',
    isPrefetch: isPrefetch(request.headers),
  }
}

/** The URL as a browser would read it in the mail, in characters that a header can carry; undefined if it is not http or https. */
export function locationOf(written: string): string | undefined {
  const url = trimmedUrl(written.replace(/[\t\r\n]/g, ''))
  const [, scheme, authority = '', rest = ''] = /^(https?:\/\/)([^/?#\\]*)(.*)$/is.exec(url) ?? []
  if (scheme === undefined) return undefined
  return `${scheme}${asciiAuthority(authority)}${rest}`.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent)
}

/** Converts the host name to ASCII; the login before it and the port stay unchanged. */
function asciiAuthority(authority: string): string {
  const port = /:\d*$/.exec(authority)?.[0] ?? ''
  const before = authority.slice(0, authority.length - port.length)
  const start = Math.max(before.lastIndexOf('@'), before.lastIndexOf(':')) + 1
  const host = before.slice(start)
  return /[^\0-\x7f]/.test(host) ? `${before.slice(0, start)}${domainToASCII(host) || host}${port}` : authority
}
