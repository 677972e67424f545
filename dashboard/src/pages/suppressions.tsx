/** Addresses that are not written to: searched, added, removed. */
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { post, remove } from '../api.ts'
import { Badge, Button, Field, Heading, Time } from '../parts/basics.tsx'
import { Confirm, FormDialog } from '../parts/dialogs.tsx'
import { Listing, useList } from '../parts/listing.tsx'
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
  const list = useList<Suppression>('suppressions', path)
  const refresh = () => client.invalidateQueries({ queryKey: ['suppressions'] })
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
      <Listing
        label={texts.pages.suppressions}
        list={list}
        columns={['Address', 'Reason', 'Source', 'Since', '']}
        empty="No address is suppressed here."
        row={(one) => (
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
        )}
      />
      {adding && <Add onClose={() => setAdding(false)} onAdded={refresh} />}
      {removing && (
        <Confirm
          title={`Write to ${removing.address} again?`}
          text="The address comes off the list. If it failed or complained before, it may do so again."
          action="Remove"
          run={() => remove(scoped(`/v1/suppressions/${encodeURIComponent(removing.address)}`))}
          onDone={async () => {
            setRemoving(undefined)
            await refresh()
          }}
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
  return (
    <FormDialog
      title="Suppress an address"
      action="Suppress"
      run={() => post('/v1/suppressions', { address: address.trim(), ...(reason ? { reason } : {}), ...inBody })}
      onDone={async () => {
        await onAdded()
        onClose()
      }}
      onClose={onClose}
    >
      <Field label="Address" type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
      <Field label="Reason" value={reason} onChange={(event) => setReason(event.target.value)} />
    </FormDialog>
  )
}
