/** Track domains: their settings for opens and clicks, the required DNS record, and the served paths. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { get, patch, post, remove } from '../api-client.ts'
import type { DomainsListData, TrackDomain, TrackingListData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem } from '../parts/basic-components.tsx'
import { Field, Select } from '../parts/form-controls.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { Code, Copy, Time } from '../parts/time-and-copy.tsx'
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
  return (
    <>
      <Heading title={texts.pages.tracking}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      {data ? <Problem error={error} /> : <Waiting error={error} />}
      {data?.trackDomains.length === 0 && <Empty>{words.empty}</Empty>}
      <div className="flex flex-col gap-6">
        {data?.trackDomains.map((track) => (
          <Track key={track.id} track={track} refresh={refresh} />
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
  ['trackOpens', words.opens],
  ['trackClicks', words.clicks],
  ['sslEnabled', words.https],
] as const
const tones = { ok: 'good', missing: 'wait', invalid: 'bad' } as const

function Track({ track, refresh }: { track: TrackDomain; refresh: () => Promise<void> }) {
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
    <section aria-label={track.fullName} className="rounded-md border border-line p-4 text-sm">
      <TrackHeading track={track} isChecking={check.isPending} onCheck={() => check.mutate()} onRemove={() => setRemoving(true)} />
      <Problem error={change.error ?? check.error} />
      {track.dnsCheckedAt && (
        <p className="mt-1 text-soft" aria-live="polite">
          {texts.dns.checked} <Time at={track.dnsCheckedAt} />
          {track.dnsError && `: ${track.dnsError}`}
        </p>
      )}
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
      {track.dnsRecord && <RequiredRecord record={track.dnsRecord} />}
      <ServedPaths origin={`${track.sslEnabled ? 'https' : 'http'}://${track.fullName}`} />
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

function TrackHeading(props: { track: TrackDomain; isChecking: boolean; onCheck: () => void; onRemove: () => void }) {
  const { mayChange } = useHere()
  const { track, isChecking, onCheck, onRemove } = props
  return (
    <div className="flex flex-wrap items-center justify-between gap-3">
      <h2 className="text-base font-semibold [overflow-wrap:anywhere]">
        {track.fullName}{' '}
        <Badge tone={track.dnsStatus === null ? 'none' : tones[track.dnsStatus]}>
          {track.dnsStatus === null ? texts.dns.notChecked : words.dns[track.dnsStatus]}
        </Badge>
      </h2>
      {mayChange && (
        <span className="flex flex-wrap gap-2">
          <Button disabled={isChecking} onClick={onCheck}>
            {isChecking ? texts.dns.checking : texts.dns.check}
          </Button>
          <Button kind="danger" aria-label={texts.actions.removeOf(track.fullName)} onClick={onRemove}>
            {texts.actions.remove}
          </Button>
        </span>
      )}
    </div>
  )
}

const RequiredRecord = ({ record }: { record: NonNullable<TrackDomain['dnsRecord']> }) => (
  <div className="mt-4">
    <p className="mb-1 text-soft">{words.publish}</p>
    <div className="flex flex-wrap items-center gap-2">
      <span className="min-w-0 grow">
        <Code>{`${record.fullName} ${record.type} ${record.value}`}</Code>
      </span>
      <Copy text={record.value} label={texts.dns.copyValue} />
    </div>
  </div>
)

type Switch = (typeof switches)[number][0]

const Switches = (props: {
  values: Record<Switch, boolean>
  disabled: boolean
  onChange: (changes: Partial<Record<Switch, boolean>>) => void
}) => (
  <div className="mt-2 flex flex-wrap gap-x-6">
    {switches.map(([name, label]) => (
      <label key={name} className="flex min-h-9 items-center gap-2">
        <input
          type="checkbox"
          checked={props.values[name]}
          disabled={props.disabled}
          onChange={({ target }) => props.onChange({ [name]: target.checked })}
        />
        {label}
      </label>
    ))}
  </div>
)

const ServedPaths = ({ origin }: { origin: string }) => (
  <>
    <h3 className="mt-4 mb-1 font-semibold">{words.served}</h3>
    <ul className="flex flex-col gap-1">
      {(['o', 'c', 'u'] as const).map((letter) => (
        <li key={letter} className="[overflow-wrap:anywhere]">
          <code className="font-mono text-xs">{`${origin}/${letter}/…`}</code> {words.servedAt[letter]}
        </li>
      ))}
    </ul>
  </>
)

function Excluded({ track, busy, onSave }: { track: TrackDomain; busy: boolean; onSave: (text: string) => void }) {
  const { mayChange } = useHere()
  const [text, setText] = useState(track.excludedClickDomains ?? '')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onSave(text.trim())
  }
  return (
    <form onSubmit={submit} className="mt-2 flex flex-wrap items-start gap-2">
      <div className="min-w-0 grow md:max-w-md">
        <Field
          label={words.excluded}
          help={words.excludedHelp}
          readOnly={!mayChange}
          value={text}
          onChange={(event) => setText(event.target.value)}
          placeholder={words.excludedExample}
        />
      </div>
      {mayChange && text !== (track.excludedClickDomains ?? '') && (
        <Button type="submit" className="mt-6" disabled={busy}>
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
