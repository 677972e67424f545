/** Suppressed addresses: search, add, remove, import and export. */
import { useMutation, useQueries, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { ApiError, getPage, post, remove, withQuery } from '../api-client.ts'
import type { Suppression, SuppressionsBulkCreateData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Heading, Problem } from '../parts/basic-components.tsx'
import { readCsv } from '../parts/csv.ts'
import { BulkBar, type Column, type Selection, useSelection } from '../parts/data-table.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Progress, SaveList } from '../parts/file-transfer.tsx'
import { Field } from '../parts/form-controls.tsx'
import { LiveSearch } from '../parts/live-search.tsx'
import { Listing, useList } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
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
  const path = scoped('/v1/suppressions', { address: filters.address, reason: filters.reason, page: filters.page, ...ofAll })
  const list = useList<Suppression>('suppressions', path)
  const refresh = () => client.invalidateQueries({ queryKey: ['suppressions'] })
  const selection = useSelection(path, list.data?.items ?? [], { keyOf: (one) => one.id, nameOf: (one) => one.address })
  return (
    <>
      <Heading title={texts.pages.suppressions} about={tenantId === undefined ? words.ofAll : words.ofTenant}>
        <SaveList<Suppression>
          name="suppressions.csv"
          columns={['address', 'reason', 'source', 'since', 'tenant_id']}
          pathOf={(page) => scoped('/v1/suppressions', { address: filters.address, reason: filters.reason, ...page, ...ofAll })}
          row={(one) => [one.address, one.reason ?? '', one.source, one.createdAt, one.tenantId ?? '']}
        />
        {mayChange && <Button onClick={() => setImporting(true)}>{words.import}</Button>}
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <Filters address={filters.address ?? ''} reason={filters.reason ?? ''} onChange={change} />
      <Listing
        label={texts.pages.suppressions}
        list={list}
        columns={useColumns(setRemoving)}
        keyOf={(one) => one.id}
        empty={words.empty}
        {...(mayChange ? { selection } : {})}
      />
      <RemoveChosen selection={selection} items={list.data?.items ?? []} onSettled={refresh} />
      {adding && <Add onClose={() => setAdding(false)} onAdded={refresh} />}
      {importing && <Import onClose={() => setImporting(false)} onDone={refresh} />}
      {removing && (
        <Confirm
          title={words.removeTitle(removing.address)}
          text={words.removeText}
          action={words.remove}
          run={() => removeOne(removing)}
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

/** The reasons that Postrider gives; callers of the API may give others. */
const reasons = ['hard fail', 'too many soft fails', 'bounce', 'complaint', 'unsubscribe'] as const
const countedForMs = 60_000

/** The number of addresses with each reason; none while an address is searched. */
function useCounts(isSearch: boolean): Readonly<Record<string, string>> {
  const { scoped, ofAll } = useHere()
  const counts = useQueries({
    queries: reasons.map((reason) => {
      const path = scoped('/v1/suppressions', { reason, perPage: 1, ...ofAll })
      return {
        queryKey: ['suppressions', 'count', path],
        queryFn: () => getPage<Suppression>(path),
        staleTime: countedForMs,
        enabled: !isSearch,
      }
    }),
  })
  return Object.fromEntries(
    reasons.flatMap((reason, index) => {
      const total = isSearch ? 0 : counts[index]?.data?.total
      return total ? [[reason, total.toLocaleString()]] : []
    }),
  )
}

interface FiltersProps {
  address: string
  /** Empty: any. */
  reason: string
  onChange: (by: { address?: string; reason?: string }) => void
}

/** Both act at once. */
function Filters({ address, reason, onChange }: FiltersProps) {
  const counts = useCounts(address !== '')
  const isOther = reason !== '' && !reasons.some((name) => name === reason)
  return (
    <div className="mb-4 flex flex-wrap items-center gap-x-3 gap-y-2">
      <LiveSearch label={words.contains} example={words.example} text={address} onSearch={(text) => onChange({ address: text })} />
      <fieldset className="flex flex-wrap gap-0.5 max-md:-mx-1.5">
        <legend className="sr-only">{words.reason}</legend>
        {['', ...reasons, ...(isOther ? [reason] : [])].map((name) => (
          <Button
            key={name}
            small
            kind="quiet"
            aria-pressed={name === reason}
            className="aria-pressed:bg-line/70 aria-pressed:text-ink"
            onClick={() => onChange({ reason: name })}
          >
            {name === '' ? words.anyReason : (known[name] ?? name)}
            {counts[name] && <span className="font-normal text-soft tabular-nums">{counts[name]}</span>}
          </Button>
        ))}
      </fieldset>
    </div>
  )
}

interface RemoveChosenProps {
  selection: Selection
  items: readonly Suppression[]
  onSettled: () => Promise<void>
}

/** Removes the selected addresses, after a confirmation. */
function RemoveChosen({ selection, items, onSettled }: RemoveChosenProps) {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <BulkBar selection={selection}>
        <Button small kind="danger" onClick={() => setAsking(true)}>
          {words.remove}
        </Button>
      </BulkBar>
      {isAsking && (
        <Confirm
          title={words.removeAllTitle(selection.chosen.size)}
          text={words.removeText}
          action={words.remove}
          run={async () => {
            try {
              for (const one of items) if (selection.chosen.has(one.id)) await removeOne(one)
            } finally {
              await onSettled()
            }
          }}
          onDone={() => {
            setAsking(false)
            selection.onChange(new Set())
          }}
          onClose={() => setAsking(false)}
        />
      )}
    </>
  )
}

/** An address that is no longer listed counts as removed. */
const removeOne = ({ address, tenantId }: Suppression) =>
  remove(withQuery(`/v1/suppressions/${encodeURIComponent(address)}`, { tenantId: tenantId ?? undefined })).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error
  })

function useColumns(onRemove: (one: Suppression) => void): readonly Column<Suppression>[] {
  const { mayChange, tenantId, nameOf } = useHere()
  const names = words.names
  return [
    { name: names.address, phone: 'title', className: 'font-medium', by: (one) => one.address, cell: (one) => one.address },
    { name: names.reason, phone: 'line', by: (one) => one.reason ?? '', cell: (one) => <Reason of={one} /> },
    ...(tenantId === undefined
      ? [
          {
            name: names.tenant,
            phone: 'line' as const,
            className: 'max-md:text-soft',
            by: (one: Suppression) => nameOf(one.tenantId),
            cell: (one: Suppression) => nameOf(one.tenantId),
          },
        ]
      : []),
    { name: names.cause, phone: 'line', className: 'text-soft [overflow-wrap:anywhere]', cell: (one) => <Cause of={one} /> },
    { name: names.since, phone: 'line', by: (one) => one.createdAt, className: 'text-soft', cell: (one) => <Time at={one.createdAt} /> },
    {
      name: texts.table.actions,
      isUnnamed: true,
      phone: 'menu',
      className: 'md:text-right',
      cell: (one) =>
        mayChange && (
          <Button small kind="quiet" className="on-row" aria-label={words.removeOf(one.address)} onClick={() => onRemove(one)}>
            {words.remove}
          </Button>
        ),
    },
  ]
}

const known: Readonly<Record<string, string>> = words.reasons
const meanings: Readonly<Record<string, string>> = words.means

const isKnown = (reason: string) => Object.hasOwn(known, reason)

/** A reason that Postrider gives; the text of a person is a note. Only a complaint is an alarm. */
function Reason({ of: { reason, source } }: { of: Suppression }) {
  if (!reason || !isKnown(reason)) return source === 'manual' && <span className="text-soft">{words.manual}</span>
  if (reason !== 'complaint') return <span data-tip={meanings[reason]}>{known[reason]}</span>
  return (
    <Badge tone="bad" title={meanings[reason]}>
      {known[reason]}
    </Badge>
  )
}

/** The email that caused the entry, or the note of the person who added it. */
function Cause({ of: { address, reason, emailId } }: { of: Suppression }) {
  const note = reason && !isKnown(reason) ? reason : ''
  if (!emailId) return note
  return (
    <>
      {note && `${note} · `}
      <Link to="/emails/$emailId" params={{ emailId }} search={{}} aria-label={words.openEmail(address)} className="link text-xs">
        {words.viewEmail}
      </Link>
    </>
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
