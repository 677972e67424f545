/** Addresses that are not written to: searched, added, removed. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { getPage, post, remove } from '../api.ts'
import { Badge, Button, Confirm, Dialog, Empty, Field, Heading, Pager, Problem, Table, Time } from '../parts/basics.tsx'
import { useFilters } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import type { Suppression } from '../types.ts'

export function SuppressionsPage() {
  const { scoped, mayChange, tenantId } = useHere()
  const [filters, change] = useFilters()
  const [address, setAddress] = useState(filters.address ?? '')
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<Suppression>()
  const client = useQueryClient()
  const path = scoped('/v1/suppressions', { address: filters.address, page: filters.page })
  const { data, error } = useQuery({
    queryKey: ['suppressions', path],
    queryFn: () => getPage<Suppression>(path),
    placeholderData: keepPreviousData,
  })
  const refresh = () => client.invalidateQueries({ queryKey: ['suppressions'] })
  const drop = useMutation({
    mutationFn: (one: Suppression) => remove(scoped(`/v1/suppressions/${encodeURIComponent(one.address)}`)),
    onSuccess: async () => {
      setRemoving(undefined)
      await refresh()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    change({ address: address.trim() })
  }
  return (
    <>
      <Heading title={texts.pages.suppressions}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            Add address
          </Button>
        )}
      </Heading>
      <p className="mb-4 text-sm text-soft">
        {tenantId === undefined ? 'The list of the organisation, which counts for every tenant.' : 'The list of this tenant.'}
      </p>
      <search className="mb-4 block">
        <form onSubmit={submit} className="flex items-end gap-2">
          <div className="grow md:max-w-sm">
            <Field label="Address contains" value={address} onChange={(event) => setAddress(event.target.value)} />
          </div>
          <Button type="submit">Search</Button>
        </form>
      </search>
      <Problem error={error} />
      {data?.total === 0 && <Empty>No address is suppressed here.</Empty>}
      {data && data.items.length > 0 && (
        <Table label={texts.pages.suppressions} columns={['Address', 'Reason', 'Source', 'Since', '']}>
          {data.items.map((one) => (
            <tr key={one.id}>
              <td className="font-medium">{one.address}</td>
              <td>{one.reason}</td>
              <td>
                <Badge tone="none">{one.source}</Badge>
              </td>
              <td>
                <Time at={one.createdAt} />
              </td>
              <td className="text-right">
                {mayChange && (
                  <Button aria-label={`Remove ${one.address}`} onClick={() => setRemoving(one)}>
                    Remove
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {data && <Pager {...data} onPage={(page) => change({ page: String(page) })} />}
      {adding && <Add onClose={() => setAdding(false)} onAdded={refresh} />}
      {removing && (
        <Confirm
          title={`Write to ${removing.address} again?`}
          text="The address comes off the list. If it failed or complained before, it may do so again."
          action="Remove"
          busy={drop.isPending}
          error={drop.error}
          onYes={() => drop.mutate(removing)}
          onClose={() => setRemoving(undefined)}
        />
      )}
    </>
  )
}

function Add({ onClose, onAdded }: { onClose: () => void; onAdded: () => Promise<void> }) {
  const { inBody } = useHere()
  const [address, setAddress] = useState('')
  const [reason, setReason] = useState('')
  const add = useMutation({
    mutationFn: () => post('/v1/suppressions', { address: address.trim(), ...(reason ? { reason } : {}), ...inBody }),
    onSuccess: async () => {
      await onAdded()
      onClose()
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog title="Suppress an address" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field label="Address" type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
        <Field label="Reason" value={reason} onChange={(event) => setReason(event.target.value)} />
        <Problem error={add.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={add.isPending}>
            Suppress
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
