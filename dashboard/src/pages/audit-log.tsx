/** The audit log, for owners. */
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { ShownAuditEntry } from '../api-types.ts'
import { Badge, Button, Field, Heading, Time } from '../parts/basic-components.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.audit

export function AuditPage() {
  const { scoped, tenants } = useHere()
  const [filters, change] = useFilters()
  const [actor, setActor] = useState(filters.actor ?? '')
  const [action, setAction] = useState(filters.action ?? '')
  const path = scoped('/dashboard/api/audit', { actor: filters.actor, action: filters.action, page: filters.page })
  const list = useList<ShownAuditEntry>('audit', path)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change({ actor: actor.trim(), action: action.trim() })
  }
  const tenantName = (id: string | null) => (id === null ? '' : (tenants.find((one) => one.id === id)?.name ?? id))
  return (
    <>
      <Heading title={texts.pages.audit} />
      <p className="mb-4 text-sm text-soft">{words.about}</p>
      <search className="mb-4 block">
        <form onSubmit={submit} className="grid items-end gap-2 md:grid-cols-[1fr_1fr_auto]">
          <Field label={words.who} value={actor} onChange={(event) => setActor(event.target.value)} />
          <Field label={words.action} value={action} onChange={(event) => setAction(event.target.value)} />
          <Button type="submit">{texts.actions.search}</Button>
        </form>
      </search>
      <Listing
        label={texts.pages.audit}
        list={list}
        columns={words.columns}
        empty={words.empty}
        row={(one) => (
          <tr key={one.id}>
            <td>
              <Time at={one.at} />
            </td>
            <td className="max-w-64 min-w-40 [overflow-wrap:anywhere]">
              <Badge tone="none">{words.kinds[one.actor.kind]}</Badge> {one.actor.name}
            </td>
            <td className="font-mono text-xs">
              {one.requestId !== null && one.actor.kind === 'key' ? (
                <Link to="/logs/$requestId" params={{ requestId: one.requestId }} search={{}} className="text-accent underline">
                  {one.action}
                </Link>
              ) : (
                one.action
              )}
            </td>
            <td className="min-w-48 [overflow-wrap:anywhere]">{about(one.data)}</td>
            <td>{tenantName(one.tenantId)}</td>
            <td className="font-mono text-xs">{one.ipAddress}</td>
          </tr>
        )}
      />
    </>
  )
}

const about = (data: Record<string, unknown>) =>
  Object.entries(data)
    .filter(([, value]) => value !== null && !(Array.isArray(value) && value.length === 0))
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(', ') : String(value)}`)
    .join(' · ')
