/** The signed-in person and the selected tenant, for every page. */
import { useQuery } from '@tanstack/react-query'
import { createContext, type ReactNode, useContext, useEffect, useState } from 'react'
import { ApiError, get, getPage, mayPass, withQuery } from './api-client.ts'
import type { SessionResponse, ShownMember, Tenant } from './api-types.ts'
import { texts } from './texts.ts'

interface Here {
  member: ShownMember
  mayChange: boolean
  /** The newest, and the selected one. */
  tenants: Tenant[]
  /** The selected tenant, or the member's own; undefined: all. */
  tenantId: string | undefined
  choose: (tenantId: string) => void
  /** The path with the tenant in its query. */
  scoped: (path: string, query?: Record<string, string | number | undefined>) => string
  /** The path of keys with `rest`: those of a member of a tenant are below the tenant's path. */
  ofKeys: (rest?: string, query?: Record<string, string | number | undefined>) => string
  /** The tenant as part of a body. */
  inBody: { tenantId?: string }
  /** For lists that show only the organisation's own records if no tenant is named: the query for those of all tenants. */
  ofAll: { all?: string }
  /** A tenant's name by its id; null: the organisation. */
  nameOf: (tenantId: string | null) => string
}

const tenantsEveryMs = 60_000

const Context = createContext<Here | undefined>(undefined)

const maxRetryMs = 4000

/** Asks until the service answers, so that the dashboard continues after an outage without a reload. */
export const useMember = () =>
  useQuery({
    queryKey: ['session'],
    queryFn: () => get<SessionResponse>('/dashboard/api/session'),
    retry: (_count, error) => mayPass(error),
    retryDelay: (count) => Math.min(1000 * 2 ** count, maxRetryMs),
  })

export function HereProvider({ member, children }: { member: ShownMember; children: ReactNode }) {
  const [chosen, setChosen] = useState(sessionStorage.getItem('tenant') ?? '')
  const isOfOrganisation = member.tenantId === null
  const tenants = useQuery({
    queryKey: ['tenants'],
    queryFn: () => getPage<Tenant>('/v1/tenants?perPage=100'),
    enabled: isOfOrganisation,
    refetchInterval: tenantsEveryMs,
  })
  const choose = (next: string) => {
    sessionStorage.setItem('tenant', next)
    setChosen(next)
  }
  const newest = tenants.data?.items
  const older = useQuery({
    queryKey: ['tenants', 'chosen', chosen],
    queryFn: () => get<Tenant>(`/v1/tenants/${encodeURIComponent(chosen)}`),
    enabled: isOfOrganisation && chosen !== '' && newest !== undefined && newest.every(({ id }) => id !== chosen),
    refetchInterval: tenantsEveryMs,
  })
  const isGone = older.error instanceof ApiError && older.error.status === 404
  useEffect(() => {
    if (!isGone) return
    sessionStorage.setItem('tenant', '')
    setChosen('')
  }, [isGone])
  const all = [...(newest ?? []), ...(older.data && newest?.every(({ id }) => id !== older.data.id) ? [older.data] : [])]
  const tenantId = member.tenantId ?? (chosen || undefined)
  const scoped: Here['scoped'] = (path, query = {}) => withQuery(path, { ...query, tenantId })
  const here: Here = {
    member,
    mayChange: member.role !== 'viewer',
    tenants: all,
    tenantId,
    choose,
    scoped,
    ofKeys: (rest = '', query = {}) =>
      member.tenantId === null
        ? scoped(`/v1/credentials${rest}`, query)
        : withQuery(`/v1/tenants/${member.tenantId}/credentials${rest}`, query),
    inBody: tenantId === undefined ? {} : { tenantId },
    ofAll: tenantId === undefined ? { all: 'true' } : {},
    nameOf: (id) => (id === null ? texts.organisation : (all.find((one) => one.id === id)?.name ?? id)),
  }
  return <Context value={here}>{children}</Context>
}

export function useHere(): Here {
  const here = useContext(Context)
  if (!here) throw new Error('a page was rendered without a session')
  return here
}
