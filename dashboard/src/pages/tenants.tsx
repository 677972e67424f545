/** Tenants: create, change, pause, limit, delete; and links to their pages. For owners of the organisation. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, patch, post, remove, withQuery } from '../api-client.ts'
import type { Tenant, TenantLimitsResponse } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Field, Heading, Select, Time } from '../parts/basic-components.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.tenants
const statuses = Object.entries(words.status).map(([value, label]) => ({ value, label }))

type TenantDialog = { what: 'edit' | 'pause' | 'resume' | 'remove'; tenant: Tenant }

/** A changed limit is in force, and reported, after a second. */
const lookEveryMs = 2000

export function TenantsPage() {
  const [filters, change] = useFilters()
  const [adding, setAdding] = useState(false)
  const [asked, setAsked] = useState<TenantDialog>()
  const client = useQueryClient()
  const list = useList<Tenant>('tenants', withQuery('/v1/tenants', { status: filters.status, page: filters.page, perPage: 50 }))
  const standing = useQuery({
    queryKey: ['tenants', 'standing'],
    queryFn: () => get<TenantLimitsResponse>('/dashboard/api/tenants'),
    refetchInterval: lookEveryMs,
  })
  const done = async () => {
    setAdding(false)
    setAsked(undefined)
    await client.invalidateQueries({ queryKey: ['tenants'] })
  }
  const reason = (id: string) => standing.data?.paused[id]
  const ceiling = (id: string) => standing.data?.ceilings[id]
  return (
    <>
      <Heading title={texts.pages.tenants}>
        <Select
          label={words.statusLabel}
          value={filters.status ?? ''}
          choices={[{ value: '', label: words.any }, ...statuses]}
          onChange={(status) => change({ status })}
        />
        <Button kind="main" onClick={() => setAdding(true)}>
          {words.add}
        </Button>
      </Heading>
      <Listing
        label={texts.pages.tenants}
        list={list}
        error={standing.error}
        columns={words.columns}
        empty={words.none}
        row={(one) => (
          <TenantRow
            key={one.id}
            of={one}
            pauseReason={reason(one.id)}
            ceiling={ceiling(one.id)}
            onAsk={(what) => setAsked({ what, tenant: one })}
          />
        )}
      />
      {adding && <AddTenant onClose={() => setAdding(false)} onDone={done} />}
      {asked && <AskedDialog asked={asked} ceiling={ceiling(asked.tenant.id)} onClose={() => setAsked(undefined)} onDone={done} />}
    </>
  )
}

function TenantRow(props: {
  of: Tenant
  pauseReason: string | undefined
  ceiling: number | undefined
  onAsk: (what: TenantDialog['what']) => void
}) {
  const { choose } = useHere()
  const { of: one, pauseReason, ceiling, onAsk } = props
  return (
    <tr>
      <td className="min-w-52 font-medium [overflow-wrap:anywhere]">
        {one.name} {one.isDefault && <Badge tone="none">{words.default}</Badge>}
        <span className="block font-mono text-xs font-normal text-soft">{one.id}</span>
      </td>
      <td>
        <Badge tone={one.status === 'active' ? 'good' : 'wait'}>{words.status[one.status]}</Badge>{' '}
        {pauseReason !== undefined && <Badge tone="wait">{words.paused}</Badge>}
        {pauseReason !== undefined && <span className="mt-1 block text-soft">{pauseReason}</span>}
      </td>
      <td className="tabular-nums">{ceiling?.toLocaleString() ?? words.noCeiling}</td>
      <td>
        <Time at={one.createdAt} />
      </td>
      <td>
        <span className="grid w-max grid-cols-2 gap-x-3 leading-6">
          {(['/emails', '/domains', '/keys', '/usage'] as const).map((to) => (
            <Link key={to} to={to} search={{}} onClick={() => choose(one.id)} className="text-accent underline">
              {words.links[to]}
            </Link>
          ))}
        </span>
      </td>
      <td>
        <span className="flex justify-end gap-2">
          <Button aria-label={words.editOf(one.name)} onClick={() => onAsk('edit')}>
            {words.edit}
          </Button>
          <Button onClick={() => onAsk(pauseReason === undefined ? 'pause' : 'resume')}>
            {pauseReason === undefined ? words.pause : words.resume}
          </Button>
          {!one.isDefault && (
            <Button kind="danger" aria-label={texts.actions.removeOf(one.name)} onClick={() => onAsk('remove')}>
              {texts.actions.remove}
            </Button>
          )}
        </span>
      </td>
    </tr>
  )
}

interface Doing {
  onClose: () => void
  onDone: () => Promise<void>
}

function AskedDialog({ asked, ceiling, ...doing }: Doing & { asked: TenantDialog; ceiling: number | undefined }) {
  const { what, tenant } = asked
  if (what === 'edit') return <EditTenant tenant={tenant} ceiling={ceiling} {...doing} />
  if (what === 'pause') return <PauseTenant tenant={tenant} {...doing} />
  if (what === 'resume') {
    return (
      <Confirm
        title={words.resumeTitle(tenant.name)}
        text={words.resumeText}
        action={words.resume}
        run={() => post(`/dashboard/api/tenants/${tenant.id}/resume`)}
        {...doing}
      />
    )
  }
  return (
    <Confirm
      title={texts.actions.removeTitle(tenant.name)}
      text={words.removeText}
      action={texts.actions.remove}
      run={() => remove(`/v1/tenants/${tenant.id}`)}
      {...doing}
    />
  )
}

function AddTenant({ onClose, onDone }: Doing) {
  const [name, setName] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post('/v1/tenants', { name })}
      onDone={onDone}
      onClose={onClose}
    >
      <Field label={words.name} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
    </FormDialog>
  )
}

function EditTenant({ tenant, ceiling, onClose, onDone }: Doing & { tenant: Tenant; ceiling: number | undefined }) {
  const [name, setName] = useState(tenant.name)
  const [status, setStatus] = useState<string>(tenant.status)
  const [send, setSend] = useState(ceiling === undefined ? '' : String(ceiling))
  const run = async () => {
    if (name !== tenant.name || status !== tenant.status) await patch(`/v1/tenants/${tenant.id}`, { name, status })
    if (send !== String(ceiling ?? ''))
      await post(`/dashboard/api/tenants/${tenant.id}/limit`, { sendPerHour: send === '' ? null : Number(send) })
  }
  return (
    <FormDialog title={words.editTitle(tenant.name)} action={texts.actions.save} run={run} onDone={onDone} onClose={onClose}>
      <Field label={words.name} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
      {!tenant.isDefault && <Select label={words.statusLabel} value={status} onChange={setStatus} choices={statuses} />}
      <Field
        label={words.ceiling}
        help={words.ceilingHelp}
        type="number"
        min={1}
        max={1_000_000_000}
        value={send}
        onChange={(event) => setSend(event.target.value)}
      />
    </FormDialog>
  )
}

function PauseTenant({ tenant, onClose, onDone }: Doing & { tenant: Tenant }) {
  const [reason, setBecause] = useState('')
  return (
    <FormDialog
      title={words.pauseTitle(tenant.name)}
      action={words.pause}
      run={() => post(`/dashboard/api/tenants/${tenant.id}/pause`, reason ? { reason } : {})}
      onDone={onDone}
      onClose={onClose}
    >
      <p className="text-sm">{words.pauseText}</p>
      <Field label={words.reason} maxLength={200} value={reason} onChange={(event) => setBecause(event.target.value)} />
    </FormDialog>
  )
}
