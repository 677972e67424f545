/** Track domains: the DNS record that each needs, their switches, which are saved at once, and the paths to forward. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { get, patch, post, remove } from '../api-client.ts'
import type { DomainsListData, TrackDomain, TrackingListData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { DnsRecordLines } from '../parts/dns-value.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { ForwardedPaths } from '../parts/forwarded-paths.tsx'
import { WarningIcon } from '../parts/icons.tsx'
import { Menu } from '../parts/menu.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { TrackingUse } from '../parts/tracking-use.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const { tracking: words } = texts

export function TrackingPage() {
  const { scoped, mayChange } = useHere()
  const [adding, setAdding] = useState(false)
  const client = useQueryClient()
  const path = scoped('/v1/tracking')
  const { data, error } = useQuery({ queryKey: ['tracking', path], queryFn: () => get<TrackingListData>(path) })
  const refresh = () => client.invalidateQueries({ queryKey: ['tracking'] })
  const isEmpty = data?.trackDomains.length === 0
  // Its check is the next step, and so the main button.
  const next = data?.trackDomains.find(({ dnsStatus }) => dnsStatus !== 'ok')
  const add = mayChange && (
    <Button kind={next ? 'plain' : 'main'} onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.tracking} about={words.about}>
        {!isEmpty && add}
      </Heading>
      {data ? <Problem error={error} /> : <Waiting error={error} />}
      {isEmpty && (
        <Empty title={words.emptyTitle} action={add}>
          {words.empty}
        </Empty>
      )}
      {data && !isEmpty && <TrackingUse />}
      <div className="flex flex-col gap-6">
        {data?.trackDomains.map((track) => (
          <Track key={track.id} track={track} isNext={track === next} refresh={refresh} />
        ))}
      </div>
      {adding && (
        <Add
          onClose={() => setAdding(false)}
          onAdded={async () => {
            setAdding(false)
            await refresh()
          }}
        />
      )}
    </>
  )
}

const switches = [
  ['trackOpens', words.opens, words.opensMeans],
  ['trackClicks', words.clicks, words.clicksMeans],
  ['sslEnabled', words.https, words.httpsMeans],
] as const
const tones = { ok: 'good', missing: 'wait', invalid: 'bad' } as const

/** Long because the parts of the card share the change and its state. */
function Track({ track, isNext, refresh }: { track: TrackDomain; isNext: boolean; refresh: () => Promise<void> }) {
  const { mayChange } = useHere()
  const [removing, setRemoving] = useState(false)
  const path = `/v1/tracking/${track.id}`
  // Shown at once, until the service confirms the change.
  const [wanted, setWanted] = useState<Partial<TrackDomain>>({})
  const change = useMutation({
    mutationFn: (changes: Partial<TrackDomain>) => patch(path, changes),
    onSuccess: refresh,
    onSettled: () => setWanted({}),
  })
  const saved = change.isSuccess ? Object.keys(change.variables)[0] : undefined
  const check = useMutation({ mutationFn: () => post(`${path}/verify`), onSuccess: refresh })
  return (
    <section aria-label={track.fullName} className="overflow-hidden rounded-lg border border-line text-sm">
      <TrackHeading track={track} isChecking={check.isPending} onCheck={() => check.mutate()} onRemove={() => setRemoving(true)} />
      <div className="px-4 empty:hidden">
        <Problem error={change.error ?? check.error} />
      </div>
      {track.dnsStatus !== 'ok' && <NotTracked track={track} isNext={isNext} isChecking={check.isPending} onCheck={() => check.mutate()} />}
      <div className="grid gap-x-10 gap-y-6 p-4 lg:grid-cols-[minmax(0,1fr)_19rem]">
        <div className="min-w-0 lg:order-last">
          <h3 className="mb-2 font-semibold">{words.counts}</h3>
          <Switches
            values={{ ...track, ...wanted }}
            disabled={!mayChange || change.isPending}
            saved={saved}
            onChange={(changes) => {
              setWanted(changes)
              change.mutate(changes)
            }}
          />
          <Excluded
            key={track.excludedClickDomains}
            track={track}
            busy={change.isPending}
            isSaved={saved === 'excludedClickDomains'}
            onSave={(excludedClickDomains) => change.mutate({ excludedClickDomains })}
          />
        </div>
        <div className="min-w-0 max-lg:order-first">
          {track.dnsRecord && <RequiredRecord record={track.dnsRecord} isFound={track.dnsStatus === 'ok'} />}
          <ForwardedPaths origin={`${track.sslEnabled ? 'https' : 'http'}://${track.fullName}`} />
        </div>
      </div>
      {removing && (
        <Confirm
          title={texts.actions.removeTitle(track.fullName)}
          text={words.removeText}
          action={texts.actions.remove}
          run={() => remove(path)}
          onDone={async () => {
            setRemoving(false)
            await refresh()
          }}
          onClose={() => setRemoving(false)}
        />
      )}
    </section>
  )
}

interface CheckProps {
  track: TrackDomain
  isChecking: boolean
  onCheck: () => void
}

const CheckButton = ({ track, isChecking, isMain = false, onCheck }: CheckProps & { isMain?: boolean }) => (
  <Button kind={isMain ? 'main' : 'plain'} disabled={isChecking} onClick={onCheck}>
    {isChecking ? texts.dns.checking : track.dnsCheckedAt === null ? words.check : texts.dns.check}
  </Button>
)

/** Until the record is found, the check is in the strip that says so. */
function TrackHeading({ onRemove, ...props }: CheckProps & { onRemove: () => void }) {
  const { mayChange } = useHere()
  const { track } = props
  const isFound = track.dnsStatus === 'ok'
  return (
    <div className="flex items-start justify-between gap-3 border-b border-line bg-sheet px-4 py-3">
      <div className="min-w-0">
        <h2 className="flex min-h-7 flex-wrap items-center gap-x-2 text-base font-semibold [overflow-wrap:anywhere]">
          {track.fullName}
          {track.dnsStatus !== null && <Badge tone={tones[track.dnsStatus]}>{words.dns[track.dnsStatus]}</Badge>}
        </h2>
        {isFound && track.dnsCheckedAt && (
          <p className="text-xs text-soft" aria-live="polite">
            {texts.dns.checked} <Time at={track.dnsCheckedAt} />
          </p>
        )}
      </div>
      {mayChange && (
        <span className="flex items-center gap-2">
          {isFound && <CheckButton {...props} />}
          <Menu label={words.actionsOf(track.fullName)} actions={[{ label: texts.actions.remove, isDanger: true, onChoose: onRemove }]} />
        </span>
      )}
    </div>
  )
}

/** The finding of the last check, and its consequence. */
function NotTracked({ isNext, ...props }: CheckProps & { isNext: boolean }) {
  const { mayChange } = useHere()
  const { dnsCheckedAt, dnsError } = props.track
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 border-b border-line bg-wait-back px-4 py-2.5 text-wait">
      <p className="flex min-w-0 flex-1 basis-56 gap-2.5" aria-live="polite">
        <WarningIcon size={16} className="mt-0.5 shrink-0" />
        <span className="min-w-0 [overflow-wrap:anywhere]">
          {dnsCheckedAt ? (
            <>
              {words.looked} <Time at={dnsCheckedAt} />
              {`: ${dnsError ?? words.noRecord}. `}
            </>
          ) : (
            `${words.notLooked} `
          )}
          {words.notTracked}
        </span>
      </p>
      {mayChange && <CheckButton {...props} isMain={isNext} />}
    </div>
  )
}

const Saved = ({ isShown }: { isShown: boolean }) => (
  <span role="status" className="text-xs text-soft">
    {isShown && words.saved}
  </span>
)

const RequiredRecord = ({ record, isFound }: { record: NonNullable<TrackDomain['dnsRecord']>; isFound: boolean }) => (
  <>
    <div className="mb-2 flex items-center gap-2">
      <h3 className="font-semibold">{words.record}</h3>
      <Badge tone="none">{record.type}</Badge>
    </div>
    {!isFound && <p className="mb-2 text-soft">{words.nextStep}</p>}
    <DnsRecordLines record={record} zone={record.fullName.slice(record.name.length + 1)} hasFullName={false} />
  </>
)

type Switch = (typeof switches)[number][0]

const Switches = (props: {
  values: Record<Switch, boolean>
  disabled: boolean
  /** The name of the setting that was saved last. */
  saved: string | undefined
  onChange: (changes: Partial<Record<Switch, boolean>>) => void
}) => (
  <div className="flex flex-col gap-2">
    {switches.map(([name, label, means]) => (
      <div key={name} className="flex items-start justify-between gap-2.5">
        <label className="flex items-start gap-2.5">
          <input
            type="checkbox"
            role="switch"
            className="switch mt-0.5"
            checked={props.values[name]}
            disabled={props.disabled}
            onChange={({ target }) => props.onChange({ [name]: target.checked })}
          />
          <span>
            {label}
            <span className="block text-xs text-soft">{means}</span>
          </span>
        </label>
        <Saved isShown={props.saved === name} />
      </div>
    ))}
  </div>
)

function Excluded(props: { track: TrackDomain; busy: boolean; isSaved: boolean; onSave: (text: string) => void }) {
  const { track, busy, isSaved, onSave } = props
  const { mayChange } = useHere()
  const [text, setText] = useState(track.excludedClickDomains ?? '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSave(text.trim())
  }
  return (
    <form onSubmit={submit} className="mt-4 flex flex-col items-start gap-2 [&>div]:w-full">
      <Field
        label={words.excluded}
        help={words.excludedHelp}
        readOnly={!mayChange}
        value={text}
        onChange={(event) => setText(event.target.value)}
        placeholder={words.excludedExample}
      />
      {mayChange && text !== (track.excludedClickDomains ?? '') && (
        <Button type="submit" disabled={busy}>
          {texts.actions.save}
        </Button>
      )}
      <Saved isShown={isSaved} />
    </form>
  )
}

function Add({ onClose, onAdded }: { onClose: () => void; onAdded: () => Promise<void> }) {
  const { scoped, inBody } = useHere()
  const path = scoped('/v1/domains')
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<DomainsListData>(path) })
  const [name, setName] = useState('click')
  const [chosen, setChosen] = useState('')
  const domains = data?.domains ?? []
  const domain = domains.find(({ id }) => String(id) === chosen) ?? domains[0]
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post('/v1/tracking', { domainId: domain?.id, name: name.trim(), ...(domain ? { tenantId: domain.tenantId } : inBody) })}
      onDone={onAdded}
      onClose={onClose}
    >
      <Problem error={error} />
      <Select
        label={words.domain}
        value={String(domain?.id ?? '')}
        onChange={setChosen}
        choices={domains.map((one) => ({ value: String(one.id), label: one.name }))}
      />
      <Field label={words.name} required value={name} onChange={(event) => setName(event.target.value)} />
    </FormDialog>
  )
}
