/** Tenants: their mail of the last 30 days, links to their pages; create, change, pause, limit, delete. For owners of the organisation. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, getPage, withQuery } from '../api-client.ts'
import type { Tenant, TenantLimitsResponse, UsageListTenantsItem } from '../api-types.ts'
import { Badge, Button, Heading, OnPhone } from '../parts/basic-components.tsx'
import { tablePercent } from '../parts/chart.tsx'
import type { Column } from '../parts/data-table.tsx'
import { Select } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { QuietState } from '../parts/quiet-state.tsx'
import { limits } from '../parts/rate-figure.tsx'
import { AddTenant, OpenedDialog, statuses, type TenantDialog } from '../parts/tenant-dialogs.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { copyText } from '../parts/toast.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { zoneNow } from '../time-zone.ts'

const words = texts.tenants

/** A changed limit is in force, and reported, after a second. */
const lookEveryMs = 2000

export function TenantsPage() {
  const [filters, change] = useFilters()
  const [adding, setAdding] = useState(false)
  const [opened, setOpened] = useState<TenantDialog>()
  const client = useQueryClient()
  const list = useList<Tenant>('tenants', withQuery('/v1/tenants', { status: filters.status, page: filters.page, perPage: 50 }))
  const standing = useQuery({
    queryKey: ['tenants', 'standing'],
    queryFn: () => get<TenantLimitsResponse>('/dashboard/api/tenants'),
    refetchInterval: lookEveryMs,
  })
  const done = async () => {
    setAdding(false)
    setOpened(undefined)
    await client.invalidateQueries({ queryKey: ['tenants'] })
  }
  const mailOf = useMailFigures()
  const reason = (id: string) => standing.data?.paused[id]
  const ceiling = (id: string) => standing.data?.ceilings[id]
  const shared = standing.data?.sendPerHour ?? null
  return (
    <>
      <Heading title={texts.pages.tenants} about={words.about(`${limits.bounces.most}%`)}>
        <Select
          bare
          label={words.statusLabel}
          value={filters.status ?? ''}
          choices={[{ value: '', label: words.anyStatus }, ...statuses]}
          onChange={(status) => change({ status })}
        />
        <Button kind="main" onClick={() => setAdding(true)}>
          {words.add}
        </Button>
      </Heading>
      <Listing
        label={texts.pages.tenants}
        list={list}
        {...(list.data?.totalPages === 1 ? { sortedBy: words.names.lost } : {})}
        error={standing.error}
        columns={useColumns({ reasonOf: reason, ceilingOf: ceiling, shared, mailOf }, (what, tenant) => setOpened({ what, tenant }))}
        keyOf={(one) => one.id}
        empty={words.none}
      />
      {adding && <AddTenant onClose={() => setAdding(false)} onDone={done} />}
      {opened && <OpenedDialog opened={opened} ceiling={ceiling(opened.tenant.id)} onClose={() => setOpened(undefined)} onDone={done} />}
    </>
  )
}

const TenantStatus = ({ status, reason }: { status: Tenant['status']; reason: string | undefined }) => (
  <>
    {status !== 'active' ? (
      <Badge tone="wait">{words.status[status]}</Badge>
    ) : (
      reason === undefined && <QuietState>{words.status.active}</QuietState>
    )}{' '}
    {reason !== undefined && <Badge tone="wait">{words.paused}</Badge>}
    {reason !== undefined && <span className="mt-1 block text-xs text-soft">{reason}</span>}
  </>
)

/** Live mail of the last 30 days by tenant id. A tenant without mail is absent. */
function useMailFigures() {
  const path = withQuery('/v1/usage/tenants', { period: 'last_30_days', timezone: zoneNow(), minSent: 1, test: 'false', perPage: 100 })
  const { data } = useQuery({
    queryKey: ['tenants', 'mail', path],
    queryFn: () => getPage<UsageListTenantsItem>(path),
    staleTime: mailEveryMs,
  })
  return (id: string) => {
    if (!data) return undefined
    const { sent = 0, bounced = 0, hard_failed: failed = 0 } = data.items.find(({ tenantId }) => tenantId === id)?.emails ?? {}
    // Only the first page is loaded: a tenant beyond it has mail, too.
    return sent === 0 && data.totalPages > 1 ? undefined : { accepted: sent, lost: bounced + failed }
  }
}
const mailEveryMs = 60_000

interface TenantFacts {
  mailOf: (id: string) => Mail
  reasonOf: (id: string) => string | undefined
  ceilingOf: (id: string) => number | undefined
  /** The organisation's limit; null: none. */
  shared: number | null
}

/** Long because each column is an element of one list. */
function useColumns({ reasonOf, ceilingOf, shared, mailOf }: TenantFacts, onAsk: OnAsk): readonly Column<Tenant>[] {
  const { choose } = useHere()
  const names = words.names
  return [
    {
      name: names.tenant,
      phone: 'title',
      by: (one) => one.name,
      cell: (one) => (
        <>
          <Link
            to="/"
            search={{}}
            data-row-link
            onClick={() => choose(one.id)}
            className="inline-block py-0.5 font-medium [overflow-wrap:anywhere] hover:underline"
          >
            {one.name}
          </Link>{' '}
          {one.isDefault && one.name !== words.default && <Badge tone="none">{words.default}</Badge>}
        </>
      ),
    },
    {
      name: names.status,
      phone: 'full',
      isUsual: (one) => one.status === 'active' && reasonOf(one.id) === undefined,
      by: (one) => `${one.status} ${reasonOf(one.id) ?? ''}`,
      cell: (one) => <TenantStatus status={one.status} reason={reasonOf(one.id)} />,
    },
    {
      name: names.accepted,
      phone: 'line',
      isNumber: true,
      isUsual: (one) => !mailOf(one.id)?.accepted,
      by: (one) => mailOf(one.id)?.accepted ?? -1,
      cell: (one) => (
        <>
          {mailOf(one.id)?.accepted.toLocaleString() ?? '–'}
          <OnPhone>{names.accepted}</OnPhone>
        </>
      ),
    },
    {
      name: names.lost,
      phone: 'line',
      isNumber: true,
      isUsual: (one) => !mailOf(one.id)?.lost,
      by: (one) => rateOf(mailOf(one.id)),
      cell: (one) => (
        <>
          <Lost mail={mailOf(one.id)} />
          <OnPhone>{names.lost}</OnPhone>
        </>
      ),
    },
    {
      name: names.perHour,
      isNumber: true,
      isUsual: (one) => ceilingOf(one.id) === undefined,
      by: (one) => ceilingOf(one.id) ?? Number.POSITIVE_INFINITY,
      cell: (one) =>
        ceilingOf(one.id)?.toLocaleString() ?? (
          <span className="text-soft" data-tip={shared === null ? undefined : words.shared(shared.toLocaleString())}>
            {shared === null ? words.noLimit : words.sharedShort}
          </span>
        ),
    },
    {
      name: names.since,
      phone: 'none',
      className: 'text-soft whitespace-nowrap',
      by: (one) => one.createdAt,
      cell: (one) => <Time at={one.createdAt} />,
    },
    {
      name: texts.table.actions,
      isUnnamed: true,
      phone: 'menu',
      cell: (one) => <TenantActions tenant={one} isPaused={reasonOf(one.id) !== undefined} onAsk={onAsk} />,
    },
  ]
}

type Mail = { accepted: number; lost: number } | undefined
const rateOf = (mail: Mail) => (mail && mail.accepted > 0 ? (mail.lost / mail.accepted) * 100 : -1)

/** Amber and red from the limits of the overview, in words for a pointer and a screen reader. */
function Lost({ mail }: { mail: Mail }) {
  if (!mail || mail.accepted === 0) return '–'
  const rate = rateOf(mail)
  const shown = tablePercent(mail.lost, mail.accepted)
  const title = texts.rate.high(`${limits.bounces.high}%`, `${limits.bounces.most}%`)
  // Most tenants are between the two: a colour on all of them would hide the one over the limit.
  if (rate < limits.bounces.most) return rate < limits.bounces.high ? shown : <span data-tip={title}>{shown}</span>
  return (
    <>
      <span className="text-xs text-bad">{words.high} </span>
      <Badge tone="bad" title={title}>
        {shown}
      </Badge>
    </>
  )
}

type OnAsk = (what: TenantDialog['what'], tenant: Tenant) => void

/** Pages that the menu opens with the tenant selected. */
const pagesOf = [
  { to: '/emails', name: texts.pages.emails },
  { to: '/domains', name: texts.pages.domains },
  { to: '/keys', name: texts.pages.keys },
  { to: '/usage', name: texts.pages.usage },
] as const

function TenantActions({ tenant, isPaused, onAsk }: { tenant: Tenant; isPaused: boolean; onAsk: OnAsk }) {
  const { choose } = useHere()
  const navigate = useNavigate()
  return (
    <span className="flex items-center md:justify-end">
      <Menu
        label={words.actionsOf(tenant.name)}
        actions={[
          { label: words.edit, onChoose: () => onAsk('edit', tenant) },
          ...pagesOf.map(({ to, name }) => ({
            label: words.show(name),
            onChoose: () => {
              choose(tenant.id)
              void navigate({ to, search: {} })
            },
          })),
          { label: texts.privacy.open, onChoose: () => onAsk('privacy', tenant) },
          { label: isPaused ? words.resume : words.pause, onChoose: () => onAsk(isPaused ? 'resume' : 'pause', tenant) },
          { label: words.copyId, onChoose: () => void copyText(tenant.id, words.copiedId) },
          ...(tenant.isDefault ? [] : [{ label: texts.actions.remove, isDanger: true, onChoose: () => onAsk('remove', tenant) }]),
        ]}
      />
    </span>
  )
}
