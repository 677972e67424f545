/** Usage of the organisation and of its tenants (contract section 14). */

import Type, { type Static } from 'typebox'
import { type Tenant, tenantStatuses } from '#tenants'
import {
  type EmailCounts,
  externalIdOf,
  type Granularity,
  granularities,
  type Period,
  ratesOf,
  type SortName,
  sortNames,
  type TenantUsage,
} from '#usage'
import { nullable, pageFields } from './common-schemas.ts'
import { fileRoute, listRoute, route } from './define-endpoint.ts'
import { limitsFields, limitsFor } from './limits.ts'
import { query } from './query-parameters.ts'
import { exportFormats, exportOf } from './usage-export.ts'

const periodFields = {
  period: Type.String({
    default: 'this_month',
    description:
      'today, yesterday, this_week, last_week, this_month, last_month, last_7_days, last_30_days, last_90_days, a month, a day, or two days',
  }),
  timezone: Type.String({ default: 'UTC', description: 'IANA name; determines the start of each day' }),
}

const PeriodObject = Type.Object({
  start: Type.String({ format: 'date-time' }),
  end: Type.String({ format: 'date-time', description: 'Last millisecond of the period' }),
})

const countFields = {
  sent: Type.Integer({ description: 'All accepted emails' }),
  delivered: Type.Integer(),
  soft_failed: Type.Integer(),
  hard_failed: Type.Integer(),
  bounced: Type.Integer(),
  held: Type.Integer(),
}
const CountsObject = Type.Object({ ...countFields, test: Type.Integer({ description: 'Accepted emails sent with test keys' }) })

const rateFields = { delivery_rate: Type.Number({ minimum: 0, maximum: 1 }), bounce_rate: Type.Number({ minimum: 0, maximum: 1 }) }
const Rates = Type.Object(rateFields)

const TenantStatus = Type.Unsafe<Tenant['status']>({ type: 'string', enum: tenantStatuses })
const ExternalId = nullable(Type.String({ description: 'externalId or external_id from the metadata of the tenant' }))

const filterFields = {
  status: Type.Optional(TenantStatus),
  minSent: Type.Integer({ minimum: 0, default: 0, description: 'Only tenants with at least this number of emails' }),
}

const organisationOnly = { permission: 'emails:read', scope: 'organisation', families: 'organisation' } as const

export const retrieveUsage = route({
  method: 'GET',
  path: '/usage',
  name: 'usage.retrieve',
  summary: 'Get usage and limits of the organisation',
  ...organisationOnly,
  query: query(periodFields),
  data: Type.Object({
    period: PeriodObject,
    emails: CountsObject,
    rates: Rates,
    tenants: Type.Object({
      total: Type.Integer(),
      active: Type.Integer(),
      withActivity: Type.Integer({ description: 'Tenants with at least one email in the period' }),
    }),
    ...limitsFields,
  }),
  refuses: [],
  handle: async (call, deps) => {
    const period = deps.usage.period(call.query)
    const { counts, tenants } = await deps.usage.organisation(period)
    return { period: periodToWire(period), emails: countsToWire(counts), rates: ratesOf(counts), tenants, ...(await limitsFor(call, deps)) }
  },
})

const orders = sortNames.flatMap((name) => [name, `-${name}`])

export const listTenantUsage = listRoute({
  method: 'GET',
  path: '/usage/tenants',
  name: 'usage.listTenants',
  summary: 'List the usage of each tenant',
  ...organisationOnly,
  query: query({
    ...periodFields,
    ...pageFields,
    ...filterFields,
    test: Type.Optional(Type.Boolean({ description: 'true: only mail sent with test keys; false: only live mail' })),
    sort: Type.Unsafe<string>({ type: 'string', enum: orders, default: '-sent', description: 'A leading minus sorts in descending order' }),
  }),
  data: Type.Object({
    tenantId: Type.String(),
    tenantName: Type.String(),
    externalId: ExternalId,
    status: TenantStatus,
    emails: CountsObject,
    rates: Rates,
  }),
  refuses: [],
  handle: async ({ query }, { usage }) => {
    const descending = query.sort.startsWith('-')
    const order = { by: query.sort.replace('-', '') as SortName, descending }
    const { items, total } = await usage.tenants(usage.period(query), query, order, { number: query.page, size: query.perPage })
    return { items: items.map(itemToWire), page: query.page, perPage: query.perPage, total }
  },
})

export const exportUsage = fileRoute({
  method: 'GET',
  path: '/usage/export',
  name: 'usage.export',
  summary: 'Export the usage of each tenant as a file, one row each, ordered by name',
  ...organisationOnly,
  query: query({
    ...periodFields,
    ...filterFields,
    format: Type.Optional(
      Type.Unsafe<(typeof exportFormats)[number]>({ type: 'string', enum: exportFormats, description: 'Default: by the Accept header' }),
    ),
  }),
  otherTypes: ['text/csv', 'application/x-ndjson'],
  data: Type.Array(
    Type.Object({
      tenant_id: Type.String(),
      tenant_name: Type.String(),
      external_id: ExternalId,
      status: TenantStatus,
      ...countFields,
      ...rateFields,
      period_start: Type.String({ format: 'date-time' }),
      period_end: Type.String({ format: 'date-time' }),
    }),
  ),
  refuses: [],
  handle: async ({ query, accept }, { usage }) => {
    const period = usage.period(query)
    const { start, end } = periodToWire(period)
    const rows = async function* () {
      for await (const some of usage.all(period, query))
        yield some.map(({ tenant, counts }) => {
          const { test: _, ...emails } = countsToWire(counts)
          const { id, name, status } = tenant
          return {
            tenant_id: id,
            tenant_name: name,
            external_id: externalIdOf(tenant),
            status,
            ...emails,
            ...ratesOf(counts),
            period_start: start,
            period_end: end,
          }
        })
    }
    return exportOf(rows(), query.format, accept, `usage-${period.firstDay}_${period.lastDay}`)
  },
})

const ofTenant = { permission: 'emails:read', scope: 'organisation or tenant', families: 'organisation' } as const

const tenantFields = { tenant_id: Type.String(), tenant_name: Type.String() }

export const retrieveTenantUsage = route({
  method: 'GET',
  path: '/tenants/{tenantId}/usage',
  name: 'usage.retrieveTenant',
  summary: 'Get the usage of a tenant',
  ...ofTenant,
  query: query(periodFields),
  data: Type.Object({ ...tenantFields, external_id: ExternalId, period: PeriodObject, emails: CountsObject, rates: Rates }),
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, query }, { usage }) => {
    const period = usage.period(query)
    const { tenant, counts } = await usage.tenant(params.tenantId, period)
    return {
      tenant_id: tenant.id,
      tenant_name: tenant.name,
      external_id: externalIdOf(tenant),
      period: periodToWire(period),
      emails: countsToWire(counts),
      rates: ratesOf(counts),
    }
  },
})

export const retrieveTenantSeries = route({
  method: 'GET',
  path: '/tenants/{tenantId}/usage/timeseries',
  name: 'usage.retrieveTenantTimeseries',
  summary: 'Get the usage of a tenant over time',
  ...ofTenant,
  query: query({
    ...periodFields,
    granularity: Type.Unsafe<Granularity>({ type: 'string', enum: granularities, default: 'day' }),
  }),
  data: Type.Object({
    ...tenantFields,
    period: PeriodObject,
    granularity: Type.Unsafe<Granularity>({ type: 'string', enum: granularities }),
    data: Type.Array(Type.Object({ timestamp: Type.String({ format: 'date-time' }), ...countFields })),
  }),
  refuses: ['not_found', 'tenant_mismatch'],
  handle: async ({ params, query }, { usage }) => {
    const { tenant, period, buckets } = await usage.series(params.tenantId, query, query.granularity)
    return {
      tenant_id: tenant.id,
      tenant_name: tenant.name,
      period: periodToWire(period),
      granularity: query.granularity,
      data: buckets.map(({ startMs, counts }) => {
        const { test: _, ...emails } = countsToWire(counts)
        return { timestamp: new Date(startMs).toISOString(), ...emails }
      }),
    }
  },
})

const periodToWire = ({ fromMs, toMs }: Period) => ({ start: new Date(fromMs).toISOString(), end: new Date(toMs - 1).toISOString() })

const countsToWire = ({ accepted, sent, softfail, hardfail, bounced, held, test }: EmailCounts): Static<typeof CountsObject> => ({
  sent: accepted,
  delivered: sent,
  soft_failed: softfail,
  hard_failed: hardfail,
  bounced,
  held,
  test,
})

const itemToWire = ({ tenant, counts }: TenantUsage) => ({
  tenantId: tenant.id,
  tenantName: tenant.name,
  externalId: externalIdOf(tenant),
  status: tenant.status,
  emails: countsToWire(counts),
  rates: ratesOf(counts),
})
