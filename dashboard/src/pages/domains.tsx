/** Sending domains and their DNS records: required values, values found, recommended actions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { Domain, DomainsListData, ReputationRetrieveData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Coded, Empty, Heading, Meter, Problem, Warning } from '../parts/basic-components.tsx'
import { tablePercent } from '../parts/chart.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { foundOf, Records, requiredOf, ZoneFile } from '../parts/domain-records.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { BackTo, RowLink, Waiting } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.domains

type Listed = DomainsListData['domains'][number]

export function DomainsPage() {
  const { scoped, mayChange, tenants } = useHere()
  const path = scoped('/v1/domains')
  const [adding, setAdding] = useState(false)
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<DomainsListData>(path) })
  const mail = useWeekOfMail()
  const columns: readonly Column<Listed>[] = [
    { name: words.domain, phone: 'title', by: (one) => one.name, cell: (one) => <RowLink to={`/domains/${one.id}`}>{one.name}</RowLink> },
    { name: words.state, phone: 'side', by: (one) => Number(one.verified), cell: (one) => <Verified is={one.verified} /> },
    {
      name: words.foundRecords,
      by: (one) => one.recordsFound,
      isUsual: hasNoFacts,
      cell: (one) => <FoundRecords of={one} />,
    },
    {
      name: words.week,
      isNumber: true,
      by: (one) => attemptsIn(mail.get(one.name)),
      cell: (one) => <WeekOfMail of={mail.get(one.name)} />,
    },
    ...(tenants.length > 1
      ? [{ name: texts.shell.tenant, by: (one: Listed) => one.tenant_name, cell: (one: Listed) => one.tenant_name }]
      : []),
    { name: words.added, phone: 'none', className: 'text-soft', by: (one) => one.createdAt, cell: (one) => <Time at={one.createdAt} /> },
  ]
  const isEmpty = data?.domains.length === 0
  const add = mayChange && (
    <Button kind="main" onClick={() => setAdding(true)}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.domains} about={words.about}>
        {!isEmpty && add}
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton />}
      {isEmpty && <Empty action={add}>{words.empty}</Empty>}
      {data && data.domains.length > 0 && (
        <DataTable
          label={texts.pages.domains}
          columns={columns}
          items={data.domains.toSorted((a, b) => Number(a.verified) - Number(b.verified))}
          keyOf={(one) => String(one.id)}
          isWhole
        />
      )}
      {adding && <AddDomain onClose={() => setAdding(false)} />}
    </>
  )
}

/** Verified without a check, such as the simulator's domain. */
const hasNoFacts = ({ verified, dnsCheckedAt }: Listed) => verified && dnsCheckedAt === null

type Counts = ReputationRetrieveData['groups'][number]

/** Live mail of the last seven days, by sending domain. */
function useWeekOfMail(): ReadonlyMap<string, Counts> {
  const { scoped } = useHere()
  const path = scoped('/v1/reputation', { groupBy: 'domain' })
  const { data } = useQuery({ queryKey: ['reputation', path], queryFn: () => get<ReputationRetrieveData>(path) })
  return new Map(data?.groups.map((one) => [one.name, one]))
}

const attemptsIn = (counts: Counts | undefined) =>
  counts === undefined ? 0 : counts.accepted + counts.deferred + counts.failed + counts.blocked

function WeekOfMail({ of: counts }: { of: Counts | undefined }) {
  const attempts = attemptsIn(counts)
  if (!counts || attempts === 0) return <span className="text-soft">{words.noMail}</span>
  return (
    <>
      {attempts.toLocaleString()} <span className="text-soft">· {words.taken(tablePercent(counts.accepted, attempts))}</span>
    </>
  )
}

/** The records that verification requires, as a bar and in words, and the time of the last check. */
function FoundRecords({ of: { recordsFound, recordsRequired, dnsCheckedAt } }: { of: Listed }) {
  if (dnsCheckedAt === null) return <span className="text-soft">{texts.dns.notChecked}</span>
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 tabular-nums">
      <Meter part={recordsFound} whole={recordsRequired} tone={recordsFound === recordsRequired ? 'good' : 'wait'} />
      <span className="whitespace-nowrap">{words.recordsOf(recordsFound, recordsRequired)}</span>
      <span className="whitespace-nowrap text-soft">
        {words.checked} <Time at={dnsCheckedAt} />
      </span>
    </span>
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
      <Heading
        title={domain.name}
        beside={
          <>
            <Verified is={domain.verified} />
            {domain.trusted && (
              <Badge tone="none" title={words.trustedMeans}>
                {words.trusted}
              </Badge>
            )}
          </>
        }
        about={words.foundOf(foundOf(domain), requiredOf(domain).length)}
      >
        {mayChange && (
          <Button kind="main" disabled={check.isPending} onClick={() => check.mutate()}>
            {check.isPending ? texts.dns.checking : texts.dns.check}
          </Button>
        )}
        {mayChange && (
          <Menu
            label={texts.email.moreActions}
            actions={[{ label: texts.actions.remove, isDanger: true, onChoose: () => setRemoving(true) }]}
          />
        )}
      </Heading>
      <Problem error={check.error ?? error} />
      <DnsState domain={domain} />
      <Keys domain={domain} />
      <ZoneFile domain={domain} />
      <Records of={domain} />
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

/** Receivers distrust shorter RSA keys. */
const minKeyBits = 2048

/** A weak DKIM key, and new keys whose records the owner publishes. */
const Keys = ({ domain: { dkimKeys } }: { domain: Domain }) => (
  <>
    {dkimKeys.bits < minKeyBits && (
      <Warning>
        <Coded>{words.weakKey(dkimKeys.bits)}</Coded>
      </Warning>
    )}
    {dkimKeys.next && !dkimKeys.delegated && (
      <Warning>
        <Coded>{words.nextKeys(dkimKeys.next.selector)}</Coded>
      </Warning>
    )}
  </>
)

/** The time of the last check, and a warning if the records cannot work. */
const DnsState = ({ domain }: { domain: Domain }) => (
  <>
    {hostOf(domain) !== undefined && (
      <Warning>
        <Coded>{words.notPublic(hostOf(domain) ?? '')}</Coded>
      </Warning>
    )}
    <p className="text-sm" aria-live="polite">
      {words.publish(domain.dnsRecords.zone)} {!domain.verified && words.watched}
    </p>
    <p className="mb-4 text-xs text-soft">
      {domain.dnsCheckedAt ? (
        <>
          {texts.dns.checked} <Time at={domain.dnsCheckedAt} />
        </>
      ) : (
        words.notCheckedYet
      )}
    </p>
  </>
)

/** POSTRIDER_HOSTNAME as used in the records, if it is not a public host name. */
function hostOf({ dnsRecords }: Domain): string | undefined {
  const host = dnsRecords.returnPath?.value.replace(/^rp\./, '')
  return host?.includes('.') ? undefined : host
}
