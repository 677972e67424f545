/** Sending domains, and the records each needs: what to publish, what was found, what to do. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { get, post, remove } from '../api.ts'
import { Badge, Button, Code, Confirm, Copy, Dialog, Empty, Field, Heading, Problem, Time } from '../parts/basics.tsx'
import { useParam } from '../parts/params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import type { DnsRecord, Domain, DomainItem } from '../types.ts'

export function DomainsPage() {
  const { scoped, mayChange } = useHere()
  const path = scoped('/v1/domains')
  const [adding, setAdding] = useState(false)
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<{ domains: DomainItem[] }>(path) })
  return (
    <>
      <Heading title={texts.pages.domains}>
        {mayChange && (
          <Button kind="main" onClick={() => setAdding(true)}>
            Add domain
          </Button>
        )}
      </Heading>
      <Problem error={error} />
      {data?.domains.length === 0 && <Empty>No domains yet. Add the one that your mail comes from.</Empty>}
      <ul className="divide-y divide-line">
        {data?.domains.map((domain) => (
          <li key={domain.id}>
            <Link
              to="/domains/$domainId"
              params={{ domainId: String(domain.id) }}
              search={{}}
              className="flex flex-wrap items-center justify-between gap-2 px-2 py-3 text-sm hover:bg-sheet"
            >
              <span className="font-medium [overflow-wrap:anywhere]">{domain.name}</span>
              <span className="flex items-center gap-3 text-soft">
                {domain.tenant_name} <Verified is={domain.verified} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
      {adding && <AddDomain onClose={() => setAdding(false)} />}
    </>
  )
}

const Verified = ({ is }: { is: boolean }) => <Badge tone={is ? 'good' : 'wait'}>{is ? 'Verified' : 'Not verified'}</Badge>

function AddDomain({ onClose }: { onClose: () => void }) {
  const { inBody } = useHere()
  const [name, setName] = useState('')
  const navigate = useNavigate()
  const add = useMutation({
    mutationFn: () => post<Domain>('/v1/domains', { name: name.trim(), ...inBody }),
    onSuccess: ({ id }) => navigate({ to: '/domains/$domainId', params: { domainId: String(id) }, search: {} }),
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    add.mutate()
  }
  return (
    <Dialog title="Add a sending domain" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <Field label="Domain" required value={name} onChange={(event) => setName(event.target.value)} placeholder="mail.example.com" />
        <Problem error={add.error} />
        <div className="flex justify-end gap-2">
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="main" type="submit" disabled={add.isPending}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

const recordNames = {
  spf: 'SPF',
  dkim: 'DKIM (RSA)',
  dkimEd25519: 'DKIM (Ed25519)',
  returnPath: 'Return path',
  dmarc: 'DMARC',
  mx: 'MX',
} as const

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
  const drop = useMutation({
    mutationFn: () => remove(`/v1/domains/${id}`),
    onSuccess: () => navigate({ to: '/domains', search: {} }),
  })
  if (!domain) return error ? <Problem error={error} /> : <p className="text-soft">Loading</p>
  return (
    <>
      <p className="mb-2 text-sm">
        <Link to="/domains" search={{}} className="text-accent underline">
          Domains
        </Link>
      </p>
      <Heading title={domain.name}>
        <Verified is={domain.verified} />
        {mayChange && (
          <Button kind="main" disabled={check.isPending} onClick={() => check.mutate()}>
            {check.isPending ? 'Asking DNS' : 'Check again'}
          </Button>
        )}
        {mayChange && (
          <Button kind="danger" onClick={() => setRemoving(true)}>
            Delete
          </Button>
        )}
      </Heading>
      <Problem error={check.error ?? error} />
      <p className="mb-4 text-sm text-soft" aria-live="polite">
        {domain.dnsCheckedAt ? (
          <>
            Last checked <Time at={domain.dnsCheckedAt} />
          </>
        ) : (
          'Not checked yet.'
        )}{' '}
        Publish these records in the zone {domain.dnsRecords.zone}.
      </p>
      <div className="flex flex-col gap-4">
        {Object.entries(recordNames).map(([name, title]) => {
          const record = domain.dnsRecords[name as keyof typeof recordNames]
          return record ? <OneRecord key={name} title={title} record={record} /> : null
        })}
      </div>
      {removing && (
        <Confirm
          title={`Delete ${domain.name}?`}
          text="Mail that waits for this domain fails, and its keys are gone for good."
          action="Delete"
          busy={drop.isPending}
          error={drop.error}
          onYes={() => drop.mutate()}
          onClose={() => setRemoving(false)}
        />
      )}
    </>
  )
}

function OneRecord({ title, record }: { title: string; record: DnsRecord }) {
  const tone = record.status === 'OK' ? 'good' : record.status === null ? 'none' : 'wait'
  return (
    <section className="rounded-md border border-line p-4">
      <h2 className="mb-2 flex flex-wrap items-center gap-2 font-semibold">
        {title} <Badge tone="none">{record.type}</Badge> <Badge tone={tone}>{record.status ?? 'Not checked'}</Badge>
      </h2>
      <div className="grid gap-2 md:grid-cols-[4rem_1fr_auto] md:items-start">
        <span className="text-sm text-soft">Name</span>
        <Code>{record.fullName}</Code>
        <Copy text={record.fullName} label="Copy name" />
        <span className="text-sm text-soft">Value</span>
        <Code>{record.value}</Code>
        <Copy text={record.value} label="Copy value" />
      </div>
      {record.problem && <p className="mt-3 text-sm text-bad">{record.problem}</p>}
      {record.suggestion && <p className="mt-1 text-sm">{record.suggestion}</p>}
      {record.found.length > 0 && record.status !== 'OK' && (
        <div className="mt-2 text-sm">
          <p className="text-soft">Found in DNS:</p>
          {record.found.map((value) => (
            <Code key={value}>{value}</Code>
          ))}
        </div>
      )}
    </section>
  )
}
