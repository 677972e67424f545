/** Track domains (contract section 11). */

import Type, { type Static } from 'typebox'
import { nameInZone } from '#domains'
import {
  addTrackDomain,
  changeTrackDomain,
  getTrackDomain,
  listTrackDomains,
  removeTrackDomain,
  type TrackDomain,
  verifyTrackDomain,
} from '#tracking'
import { nullable, optional, tenantFields, tenantNamedIn, tenantParameter } from './common-schemas.ts'
import { route } from './define-endpoint.ts'
import { query } from './query-parameters.ts'

const manages = { permission: 'domains:manage', scope: 'organisation or tenant', families: 'both' } as const

const CnameRecord = nullable(
  Type.Object({
    type: Type.Unsafe<'CNAME'>({ type: 'string', enum: ['CNAME'] }),
    name: Type.String({ description: 'Relative to the zone' }),
    fullName: Type.String(),
    value: Type.String(),
  }),
)
const DnsStatus = nullable(Type.Unsafe<'ok' | 'missing' | 'invalid'>({ type: 'string', enum: ['ok', 'missing', 'invalid'] }))

const dnsFields = {
  dnsOk: Type.Boolean({ description: 'true: the CNAME record was found' }),
  dnsStatus: DnsStatus,
  dnsError: nullable(Type.String()),
  dnsCheckedAt: nullable(Type.String({ format: 'date-time' })),
  dnsRecord: CnameRecord,
}

const TrackDomainObject = Type.Object({
  id: Type.String(),
  name: Type.String(),
  fullName: Type.String(),
  domainId: Type.String({ description: 'Id of the sending domain' }),
  trackClicks: Type.Boolean(),
  trackOpens: Type.Boolean(),
  sslEnabled: Type.Boolean(),
  ...dnsFields,
  excludedClickDomains: nullable(Type.String({ description: 'Comma-separated' })),
  createdAt: Type.String({ format: 'date-time' }),
  updatedAt: nullable(Type.String({ format: 'date-time' })),
  tenantId: Type.String(),
})

const settings = {
  sslEnabled: optional(Type.Boolean()),
  trackClicks: optional(Type.Boolean()),
  trackOpens: optional(Type.Boolean()),
  excludedClickDomains: optional(
    Type.String({ maxLength: 10_000, description: 'Host names, comma-separated; links to them and their subdomains are not rewritten' }),
  ),
}

const DomainId = Type.Unsafe<number | string>({ type: ['integer', 'string'], minimum: 1, pattern: '^[1-9]\\d{0,14}$' })

export const createTrackDomain = route({
  method: 'POST',
  path: '/tracking',
  name: 'tracking.create',
  summary: 'Create a track domain below a sending domain',
  ...manages,
  body: Type.Object({ domainId: DomainId, name: Type.String({ minLength: 1, maxLength: 253 }), ...settings, ...tenantFields }),
  status: 201,
  data: TrackDomainObject,
  refuses: ['track_domain_already_exists', 'tenant_archived', 'tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, ids, tenants, config }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const wanted = { ...call.body, domainId: Number(call.body.domainId), tenantId }
    return trackToWire(await addTrackDomain(db, wanted, { nowMs: clock.nowMs(), ids }), config.hostname)
  },
})

export const listTrackDomainsRoute = route({
  method: 'GET',
  path: '/tracking',
  name: 'tracking.list',
  summary: 'List track domains',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ trackDomains: Type.Array(TrackDomainObject) }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ tenantId }, { db, config }) => ({
    trackDomains: (await listTrackDomains(db, tenantId)).map((one) => trackToWire(one, config.hostname)),
  }),
})

export const retrieveTrackDomain = route({
  method: 'GET',
  path: '/tracking/{trackingId}',
  name: 'tracking.retrieve',
  summary: 'Get a track domain',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: TrackDomainObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db, config }) =>
    trackToWire(await getTrackDomain(db, params.trackingId, tenantId), config.hostname),
})

export const updateTrackDomain = route({
  method: 'PATCH',
  path: '/tracking/{trackingId}',
  name: 'tracking.update',
  summary: 'Change the settings of a track domain',
  ...manages,
  body: Type.Object({ ...settings, ...tenantFields }),
  data: TrackDomainObject,
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async (call, { db, clock, tenants, tracks, config }) => {
    const tenantId = await tenantNamedIn(call, tenants)
    const changed = await changeTrackDomain(db, call.params.trackingId, tenantId, call.body, clock.nowMs())
    tracks.forget()
    return trackToWire(changed, config.hostname)
  },
})

export const verifyTrackDomainRoute = route({
  method: 'POST',
  path: '/tracking/{trackingId}/verify',
  name: 'tracking.verify',
  summary: 'Check the CNAME record of a track domain now',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ id: Type.String(), fullName: Type.String(), ...dnsFields }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db, clock, resolver, tracks, config }) => {
    const track = await getTrackDomain(db, params.trackingId, tenantId)
    const checked = await verifyTrackDomain(track, { db, clock, resolver, hostname: config.hostname })
    tracks.forget()
    return { id: String(checked.id), fullName: checked.fullName, ...dnsOf(checked, config.hostname) }
  },
})

export const deleteTrackDomain = route({
  method: 'DELETE',
  path: '/tracking/{trackingId}',
  name: 'tracking.delete',
  summary: 'Delete a track domain',
  ...manages,
  query: query({ tenantId: tenantParameter }),
  data: Type.Object({ message: Type.String() }),
  refuses: ['tenant_mismatch', 'not_found'],
  handle: async ({ params, tenantId }, { db, tracks }) => {
    await removeTrackDomain(db, params.trackingId, tenantId)
    tracks.forget()
    return { message: 'The track domain has been deleted' }
  },
})

const dnsOf = (track: TrackDomain, hostname: string) => ({
  dnsOk: track.dnsStatus === 'ok',
  dnsStatus: track.dnsStatus,
  dnsError: track.dnsError,
  dnsCheckedAt: track.dnsCheckedAt?.toISOString() ?? null,
  dnsRecord: { type: 'CNAME' as const, name: nameInZone(track.fullName), fullName: track.fullName, value: `track.${hostname}` },
})

function trackToWire(track: TrackDomain, hostname: string): Static<typeof TrackDomainObject> {
  return {
    id: String(track.id),
    name: track.name,
    fullName: track.fullName,
    domainId: String(track.domainId),
    trackClicks: track.trackClicks,
    trackOpens: track.trackOpens,
    sslEnabled: track.sslEnabled,
    ...dnsOf(track, hostname),
    excludedClickDomains: track.excludedClickDomains,
    createdAt: track.createdAt.toISOString(),
    updatedAt: track.updatedAt?.toISOString() ?? null,
    tenantId: track.tenantId,
  }
}
