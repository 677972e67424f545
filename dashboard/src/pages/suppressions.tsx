/** Suppressed addresses: search, add, remove, import and export. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { post, remove, withQuery } from '../api-client.ts'
import type { Suppression, SuppressionsBulkCreateData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Dialog, Field, Heading, Problem, Time } from '../parts/basic-components.tsx'
import { readCsv } from '../parts/csv.ts'
import { Progress, SaveList } from '../parts/file-transfer.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { useFilters } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.suppressions

export function SuppressionsPage() {
  const { scoped, mayChange, tenantId, ofAll } = useHere()
  const [filters, change] = useFilters()
  const [adding, setAdding] = useState(false)
  const [importing, setImporting] = useState(false)
  const [removing, setRemoving] = useState<Suppression>()
  const client = useQueryClient()
  const path = scoped('/v1/suppressions', { address: filters.address, page: filters.page, ...ofAll })
  const list = useList<Suppression>('suppressions', path)
  const refresh = () => client.invalidateQueries({ queryKey: ['suppressions'] })
  return (
    <>
      <Heading title={texts.pages.suppressions}>
        <SaveList<Suppression>
          name="suppressions.csv"
          columns={['address', 'reason', 'source', 'since', 'tenant_id']}
          pathOf={(page) => scoped('/v1/suppressions', { address: filters.address, ...page, ...ofAll })}
          row={(one) => [one.address, one.reason ?? '', one.source, one.createdAt, one.tenantId ?? '']}
        />
        {mayChange && <Button onClick={() => setImporting(true)}>{words.import}</Button>}
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <p className="mb-4 text-sm text-soft">{tenantId === undefined ? words.ofAll : words.ofTenant}</p>
      <SearchForm address={filters.address ?? ''} onSearch={(address) => change({ address })} />
      <Listing
        label={texts.pages.suppressions}
        list={list}
        columns={tenantId === undefined ? words.columnsOfAll : words.columns}
        empty={words.empty}
        row={(one) => <Row key={one.id} of={one} onRemove={() => setRemoving(one)} />}
      />
      {adding && <Add onClose={() => setAdding(false)} onAdded={refresh} />}
      {importing && <Import onClose={() => setImporting(false)} onDone={refresh} />}
      {removing && (
        <Confirm
          title={words.removeTitle(removing.address)}
          text={words.removeText}
          action={words.remove}
          run={() =>
            remove(withQuery(`/v1/suppressions/${encodeURIComponent(removing.address)}`, { tenantId: removing.tenantId ?? undefined }))
          }
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

function SearchForm({ address: begun, onSearch }: { address: string; onSearch: (address: string) => void }) {
  const [address, setAddress] = useState(begun)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSearch(address.trim())
  }
  return (
    <search className="mb-4 block">
      <form onSubmit={submit} className="flex items-end gap-2">
        <div className="grow md:max-w-sm">
          <Field label={words.contains} value={address} onChange={(event) => setAddress(event.target.value)} />
        </div>
        <Button type="submit">{texts.actions.search}</Button>
      </form>
    </search>
  )
}

function Row({ of: one, onRemove }: { of: Suppression; onRemove: () => void }) {
  const { mayChange, tenantId, nameOf } = useHere()
  return (
    <tr>
      <td className="font-medium">{one.address}</td>
      {tenantId === undefined && <td className="min-w-28">{nameOf(one.tenantId)}</td>}
      <td>{one.reason}</td>
      <td>
        <Badge tone="none">{one.source}</Badge>{' '}
        {one.emailId && (
          <Link to="/emails/$emailId" params={{ emailId: one.emailId }} className="text-accent underline">
            {words.email}
          </Link>
        )}
      </td>
      <td>
        <Time at={one.createdAt} />
      </td>
      <td className="text-right">
        {mayChange && (
          <Button aria-label={words.removeOf(one.address)} onClick={onRemove}>
            {words.remove}
          </Button>
        )}
      </td>
    </tr>
  )
}

function Add({ onClose, onAdded }: { onClose: () => void; onAdded: () => Promise<void> }) {
  const { inBody } = useHere()
  const [address, setAddress] = useState('')
  const [reason, setReason] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={words.addAction}
      run={() => post('/v1/suppressions', { address: address.trim(), ...(reason ? { reason } : {}), ...inBody })}
      onDone={async () => {
        await onAdded()
        onClose()
      }}
      onClose={onClose}
    >
      <Field label={words.address} type="email" required value={address} onChange={(event) => setAddress(event.target.value)} />
      <Field label={words.reason} value={reason} onChange={(event) => setReason(event.target.value)} />
    </FormDialog>
  )
}

/** The API's limit for one request. */
const atOnce = 1000

function Import({ onClose, onDone }: { onClose: () => void; onDone: () => Promise<void> }) {
  const { inBody } = useHere()
  const [progress, setProgress] = useState({ done: 0, total: 0 })
  const sending = useMutation({
    mutationFn: async (file: File) => {
      const entries = entriesOf(await file.text())
      const sum = { added: 0, updated: 0, failed: 0 }
      for (let done = 0; done < entries.length; done += atOnce) {
        setProgress({ done, total: entries.length })
        const suppressions = entries.slice(done, done + atOnce)
        const counted = await post<SuppressionsBulkCreateData>('/v1/suppressions/bulk', { suppressions, ...inBody })
        for (const name of ['added', 'updated', 'failed'] as const) sum[name] += counted[name]
      }
      setProgress({ done: entries.length, total: entries.length })
      return entries.length === 0 ? undefined : sum
    },
    onSettled: onDone,
  })
  return (
    <Dialog title={words.import} onClose={onClose}>
      <div className="flex flex-col gap-4">
        <Field
          label={words.file}
          help={words.importHelp}
          type="file"
          accept=".csv,.txt,text/csv,text/plain"
          disabled={sending.isPending}
          onChange={({ target }) => target.files?.[0] && sending.mutate(target.files[0])}
        />
        {progress.total > 0 && <Progress {...progress} label={words.import} />}
        <p aria-live="polite" className="text-sm">
          {sending.isSuccess && (sending.data ? words.done(sending.data.added, sending.data.updated, sending.data.failed) : words.none)}
        </p>
        <Problem error={sending.error} />
        <div className="flex justify-end">
          <Button onClick={onClose}>{texts.actions.close}</Button>
        </div>
      </div>
    </Dialog>
  )
}

const maxReasonLength = 500

function entriesOf(text: string): { address: string; reason?: string }[] {
  const rows = readCsv(text)
  if (!rows[0]?.[0]?.includes('@')) rows.shift()
  return rows.map(([address = '', reason = '']) => ({
    address: address.trim(),
    ...(reason.trim() ? { reason: reason.trim().slice(0, maxReasonLength) } : {}),
  }))
}
