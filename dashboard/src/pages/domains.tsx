/** Sending domains and their DNS records: required values, values found, recommended actions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { DnsRecord, Domain, DomainsListData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Code, Copy, Empty, Field, Heading, Problem, Time } from '../parts/basic-components.tsx'
import { BackTo, RowLink, Waiting } from '../parts/paged-lists.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.domains

export function DomainsPage() {
  const { scoped, mayChange } = useHere()
  const path = scoped('/v1/domains')
  const [adding, setAdding] = useState(false)
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<DomainsListData>(path) })
  return (
    <>
      <Heading title={texts.pages.domains}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            {words.add}
          </Button>
        )}
      </Heading>
      <Problem error={error} />
      {data?.domains.length === 0 && <Empty>{words.empty}</Empty>}
      <ul className="divide-y divide-line">
        {data?.domains.map((domain) => (
          <RowLink
            key={domain.id}
            to={`/domains/${domain.id}`}
            left={<span className="font-medium">{domain.name}</span>}
            right={
              <>
                {domain.tenant_name} <Verified is={domain.verified} />
              </>
            }
          />
        ))}
      </ul>
      {adding && <AddDomain onClose={() => setAdding(false)} />}
    </>
  )
}

const Verified = ({ is }: { is: boolean }) => <Badge tone={is ? 'good' : 'wait'}>{is ? words.verified : words.notVerified}</Badge>

function AddDomain({ onClose }: { onClose: () => void }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const navigate = useNavigate()
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post<Domain>('/v1/domains', { name: name.trim(), ...inBody })}
      onDone={({ id }) => navigate({ to: '/domains/$domainId', params: { domainId: String(id) }, search: {} })}
      onClose={onClose}
    >
      <Field label={words.domain} required value={name} onChange={(event) => setName(event.target.value)} placeholder={words.example} />
    </FormDialog>
  )
}

export function DomainPage() {
  const id = useParam('domainId')
  const { mayChange } = useHere()
  const [removing, setRemoving] = useState(false)
  const client = useQueryClient()
  const navigate = useNavigate()
  const key = ['domain', id]
  const { data: domain, error } = useQuery({ queryKey: key, queryFn: () => get<Domain>(`/v1/domains/${id}`) })
  const check = useMutation({
    mutationFn: () => post<Domain>(`/v1/domains/${id}/verify`),
    onSuccess: (checked) => client.setQueryData(key, checked),
  })
  if (!domain) return <Waiting error={error} />
  return (
    <>
      <BackTo to="/domains">{texts.pages.domains}</BackTo>
      <Heading title={domain.name}>
        <Verified is={domain.verified} />
        {mayChange && (
          <Button kind="main" disabled={check.isPending} onClick={() => check.mutate()}>
            {check.isPending ? texts.dns.checking : texts.dns.check}
          </Button>
        )}
        {mayChange && (
          <Button kind="danger" onClick={() => setRemoving(true)}>
            {texts.actions.remove}
          </Button>
        )}
      </Heading>
      <Problem error={check.error ?? error} />
      <DnsState domain={domain} />
      <div className="flex flex-col gap-4">
        {Object.entries(words.records).map(([name, title]) => {
          const record = domain.dnsRecords[name as keyof typeof words.records]
          return record ? <OneRecord key={name} name={name} title={title} record={record} /> : null
        })}
      </div>
      {removing && (
        <Confirm
          title={texts.actions.removeTitle(domain.name)}
          text={words.removeText}
          action={texts.actions.remove}
          run={() => remove(`/v1/domains/${id}`)}
          onDone={() => navigate({ to: '/domains', search: {} })}
          onClose={() => setRemoving(false)}
        />
      )}
    </>
  )
}

/** The time of the last check, and a warning if the records cannot work. */
const DnsState = ({ domain }: { domain: Domain }) => (
  <>
    <p className="mb-4 text-sm text-soft" aria-live="polite">
      {domain.dnsCheckedAt ? (
        <>
          {texts.dns.checked} <Time at={domain.dnsCheckedAt} />
        </>
      ) : (
        words.notCheckedYet
      )}{' '}
      {words.publish(domain.dnsRecords.zone)} {!domain.verified && words.watched}
    </p>
    {hostOf(domain) !== undefined && (
      <p role="alert" className="mb-4 rounded-md bg-wait-back p-3 text-sm text-wait">
        {words.notPublic(hostOf(domain) ?? '')}
      </p>
    )}
  </>
)

/** POSTRIDER_HOSTNAME as used in the records, if it is not a public host name. */
function hostOf({ dnsRecords }: Domain): string | undefined {
  const host = dnsRecords.returnPath?.value.replace(/^rp\./, '')
  return host?.includes('.') ? undefined : host
}

function OneRecord({ name, title, record }: { name: string; title: string; record: DnsRecord }) {
  const advice = words.advice[name as keyof typeof words.advice]
  const tone = record.status === 'OK' ? 'good' : record.status === null ? 'none' : 'wait'
  return (
    <section className="rounded-md border border-line p-4">
      <h2 className="mb-2 flex flex-wrap items-center gap-2 font-semibold">
        {title} <Badge tone="none">{record.type}</Badge> <Badge tone={tone}>{record.status ?? texts.dns.notChecked}</Badge>
      </h2>
      {advice && <p className="mb-2 text-sm text-soft">{advice}</p>}
      <div className="grid gap-2 md:grid-cols-[4rem_1fr_auto] md:items-start">
        <span className="text-sm text-soft">{words.name}</span>
        <Code>{record.fullName}</Code>
        <Copy text={record.fullName} label={words.copyName} />
        <span className="text-sm text-soft">{words.value}</span>
        <Code>{record.value}</Code>
        <Copy text={record.value} label={texts.dns.copyValue} />
      </div>
      {record.problem && <p className="mt-3 text-sm text-bad">{record.problem}</p>}
      {record.suggestion && <p className="mt-1 text-sm">{record.suggestion}</p>}
      {record.found.length > 0 && record.status !== 'OK' && (
        <div className="mt-2 text-sm">
          <p className="text-soft">{words.found}</p>
          {record.found.map((value) => (
            <Code key={value}>{value}</Code>
          ))}
        </div>
      )}
    </section>
  )
}
