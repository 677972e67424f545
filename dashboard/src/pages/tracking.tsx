/** Track domains: their switches, the DNS record that each needs, and the paths to forward. A change is saved at once. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { get, patch, post, remove } from '../api-client.ts'
import type { DomainsListData, TrackDomain, TrackingListData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { DnsRecordLines } from '../parts/dns-value.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { WarningIcon } from '../parts/icons.tsx'
import { Menu } from '../parts/menu.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { CopyIconButton, Time } from '../parts/time-and-copy.tsx'
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
      {data && !isEmpty && <TrackingUse of={data.trackDomains} />}
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
  const check = useMutation({ mutationFn: () => post(`${path}/verify`), onSuccess: refresh })
  return (
    <section aria-label={track.fullName} className="overflow-hidden rounded-lg border border-line text-sm">
      <TrackHeading
        track={track}
        isNext={isNext}
        isChecking={check.isPending}
        onCheck={() => check.mutate()}
        onRemove={() => setRemoving(true)}
      />
      <div className="px-4 empty:hidden">
        <Problem error={change.error ?? check.error} />
      </div>
      {track.dnsStatus !== 'ok' && (
        <p className="flex gap-2.5 border-b border-line bg-wait-back px-4 py-2.5 text-wait">
          <WarningIcon size={16} className="mt-0.5 shrink-0" />
          {words.notTracked}
        </p>
      )}
      <div className="grid gap-x-10 gap-y-6 p-4 lg:grid-cols-[minmax(0,1fr)_19rem]">
        <div className="min-w-0 lg:order-last">
          <PartTitle aside={<SaveState isSaving={change.isPending} isSaved={change.isSuccess} />}>{words.counts}</PartTitle>
          <Switches
            values={{ ...track, ...wanted }}
            disabled={!mayChange || change.isPending}
            onChange={(changes) => {
              setWanted(changes)
              change.mutate(changes)
            }}
          />
          <Excluded
            key={track.excludedClickDomains}
            track={track}
            busy={change.isPending}
            onSave={(excludedClickDomains) => change.mutate({ excludedClickDomains })}
          />
        </div>
        <div className="min-w-0 max-lg:order-first">
          {track.dnsRecord && <RequiredRecord record={track.dnsRecord} isFound={track.dnsStatus === 'ok'} />}
          <ServedPaths origin={`${track.sslEnabled ? 'https' : 'http'}://${track.fullName}`} />
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

const PartTitle = ({ children, aside }: { children: string; aside?: ReactNode }) => (
  <div className="mb-2 flex min-h-5 items-center justify-between gap-2">
    <h3 className="font-semibold">{children}</h3>
    {aside}
  </div>
)

const SaveState = ({ isSaving, isSaved }: { isSaving: boolean; isSaved: boolean }) => (
  <span role="status" className="text-xs text-soft">
    {isSaving ? words.saving : isSaved ? words.saved : words.savedAtOnce}
  </span>
)

function TrackHeading(props: { track: TrackDomain; isNext: boolean; isChecking: boolean; onCheck: () => void; onRemove: () => void }) {
  const { mayChange } = useHere()
  const { track, isNext, isChecking, onCheck, onRemove } = props
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 border-b border-line bg-sheet px-4 py-3">
      <div className="min-w-0">
        <h2 className="flex flex-wrap items-center gap-2 text-base font-semibold [overflow-wrap:anywhere]">
          {track.fullName}
          <Badge tone={track.dnsStatus === null ? 'wait' : tones[track.dnsStatus]}>
            {track.dnsStatus === null ? texts.dns.notChecked : words.dns[track.dnsStatus]}
          </Badge>
        </h2>
        {track.dnsCheckedAt && (
          <p className="text-xs text-soft" aria-live="polite">
            {texts.dns.checked} <Time at={track.dnsCheckedAt} />
            {track.dnsError && `: ${track.dnsError}`}
          </p>
        )}
      </div>
      {mayChange && (
        <span className="flex flex-wrap items-center gap-2">
          <Button kind={isNext ? 'main' : 'plain'} disabled={isChecking} onClick={onCheck}>
            {isChecking ? texts.dns.checking : track.dnsCheckedAt === null ? words.check : texts.dns.check}
          </Button>
          <Menu label={words.actionsOf(track.fullName)} actions={[{ label: texts.actions.remove, isDanger: true, onChoose: onRemove }]} />
        </span>
      )}
    </div>
  )
}

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
  onChange: (changes: Partial<Record<Switch, boolean>>) => void
}) => (
  <div className="flex flex-col gap-2">
    {switches.map(([name, label, means]) => (
      <label key={name} className="flex items-start gap-2.5">
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
    ))}
  </div>
)

const ServedPaths = ({ origin }: { origin: string }) => (
  <div className="mt-5">
    <PartTitle>{words.served}</PartTitle>
    <p className="mb-2 text-soft">{words.publish}</p>
    <ul className="flex flex-col gap-1">
      {(['o', 'c', 'u'] as const).map((letter) => (
        <li key={letter} className="flex flex-wrap items-center gap-x-2 [overflow-wrap:anywhere]">
          <code className="font-mono text-xs">{`${origin}/${letter}/*`}</code>
          <CopyIconButton text={`${origin}/${letter}/`} label={words.copyPath(letter)} />
          <span className="text-xs text-soft">{words.servedAt[letter]}</span>
        </li>
      ))}
    </ul>
  </div>
)

function Excluded({ track, busy, onSave }: { track: TrackDomain; busy: boolean; onSave: (text: string) => void }) {
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
