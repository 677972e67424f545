/** Sending domains and their DNS records: required values, values found, recommended actions. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { Domain, DomainsListData, ReputationRetrieveData } from '../api-types.ts'
import { Confirm, FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, Coded, Empty, Heading, Meter, OnPhone, Problem, Warning } from '../parts/basic-components.tsx'
import { tablePercent } from '../parts/chart.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { foundOf, Records, requiredOf, ZoneFile } from '../parts/domain-records.tsx'
import { Field } from '../parts/form-controls.tsx'
import { Menu } from '../parts/menu.tsx'
import { BackTo, RowLink, Waiting } from '../parts/paged-lists.tsx'
import { QuietState } from '../parts/quiet-state.tsx'
import { limits } from '../parts/rate-figure.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { useParam } from '../parts/url-params.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.domains

type Listed = DomainsListData['domains'][number]

/** Long because each column is an element of one list. */
export function DomainsPage() {
  const { scoped, mayChange, tenants } = useHere()
  const path = scoped('/v1/domains')
  const [adding, setAdding] = useState(false)
  const { data, error } = useQuery({ queryKey: ['domains', path], queryFn: () => get<DomainsListData>(path) })
  const mail = useWeekOfMail()
  const columns: readonly Column<Listed>[] = [
    { name: words.domain, phone: 'title', by: (one) => one.name, cell: (one) => <RowLink to={`/domains/${one.id}`}>{one.name}</RowLink> },
    {
      name: words.state,
      phone: 'side',
      by: (one) => Number(one.verified),
      cell: (one) => (one.verified ? <QuietState>{words.verified}</QuietState> : <Verified is={false} />),
    },
    {
      name: words.foundRecords,
      phone: 'full',
      by: (one) => one.recordsFound,
      isUsual: (one) => one.recordsFound === one.recordsRequired || one.dnsCheckedAt === null,
      cell: (one) => <FoundRecords of={one} />,
    },
    { name: words.dmarc, phone: 'line', by: (one) => one.dmarcPolicy ?? '', isUsual: hasPolicy, cell: (one) => <Policy of={one} /> },
    ...(tenants.length > 1
      ? [{ name: texts.shell.tenant, phone: 'line' as const, by: (one: Listed) => one.tenant_name, cell: (one: Listed) => one.tenant_name }]
      : []),
    {
      name: words.week,
      phone: 'line',
      isNumber: true,
      by: (one) => mail.groups.get(one.name)?.accepted ?? 0,
      cell: (one) => <WeekOfMail of={mail.groups.get(one.name)} isComplete={mail.isComplete} />,
    },
    {
      name: words.rate,
      phone: 'line',
      isNumber: true,
      by: (one) => rateOf(mail.groups.get(one.name)) ?? -1,
      isUsual: (one) => rateOf(mail.groups.get(one.name)) === undefined,
      cell: (one) => <Rate of={mail.groups.get(one.name)} />,
    },
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

/** Not asked for as long as nothing is checked. */
const hasPolicy = ({ dmarcPolicy, dnsCheckedAt }: Listed) => dmarcPolicy !== null || dnsCheckedAt === null

/** The treatment that the domain asks of receivers for mail that fails DMARC. */
function Policy({ of: one }: { of: Listed }) {
  if (one.dmarcPolicy) return words.policies[one.dmarcPolicy]
  return hasPolicy(one) ? (
    <span className="text-soft">–</span>
  ) : (
    <span className="text-wait">
      <span className="max-md:hidden">{words.noRecord}</span>
      <span className="md:hidden">{words.noDmarc}</span>
    </span>
  )
}

type Counts = ReputationRetrieveData['groups'][number]

/** Live mail of the last seven days, by sending domain. The answer has only the domains with the most mail. */
function useWeekOfMail(): { groups: ReadonlyMap<string, Counts>; isComplete: boolean } {
  const { scoped } = useHere()
  const path = scoped('/v1/reputation', { groupBy: 'domain' })
  const { data } = useQuery({ queryKey: ['reputation', path], queryFn: () => get<ReputationRetrieveData>(path) })
  return { groups: new Map(data?.groups.map((one) => [one.name, one])), isComplete: data?.moreGroups === 0 }
}

/** Of the attempts that were final, the share that servers accepted; undefined: none was. */
function rateOf(counts: Counts | undefined): number | undefined {
  const final = counts ? counts.accepted + counts.failed + counts.blocked : 0
  return counts && final > 0 ? counts.accepted / final : undefined
}

const WeekOfMail = ({ of: counts, isComplete }: { of: Counts | undefined; isComplete: boolean }) =>
  counts?.accepted ? (
    <>
      {counts.accepted.toLocaleString()}
      <OnPhone>{words.deliveredShort}</OnPhone>
    </>
  ) : (
    <span className="text-soft">{counts || isComplete ? words.noMail : '–'}</span>
  )

/** Amber from the limit of the tenants' rates on. */
function Rate({ of: counts }: { of: Counts | undefined }) {
  const rate = rateOf(counts)
  if (rate === undefined) return <span className="text-soft">–</span>
  return <span className={(1 - rate) * 100 >= limits.bounces.most ? 'text-wait' : ''}>{tablePercent(rate, 1)}</span>
}

/** The records that verification requires, as a bar and in words, and the time of the last check. */
function FoundRecords({ of: { verified, recordsFound, recordsRequired, dnsCheckedAt } }: { of: Listed }) {
  if (dnsCheckedAt === null)
    return verified ? (
      <span className="text-soft" data-tip={words.withoutCheck}>
        –
      </span>
    ) : (
      <span className="text-soft">{texts.dns.notChecked}</span>
    )
  const isWhole = recordsFound === recordsRequired
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 tabular-nums">
      {!isWhole && <Meter part={recordsFound} whole={recordsRequired} tone="wait" />}
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
        about={<Checked domain={domain} />}
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

/** How many records are found, and the time of the last check. */
const Checked = ({ domain }: { domain: Domain }) => (
  <span className="flex flex-wrap items-center gap-x-1.5" aria-live="polite">
    <Meter part={foundOf(domain)} whole={requiredOf(domain).length} tone={domain.verified ? 'good' : 'wait'} />
    <span>
      {words.foundOf(foundOf(domain), requiredOf(domain).length)},{' '}
      {domain.dnsCheckedAt ? (
        <>
          {words.checked} <Time at={domain.dnsCheckedAt} />
        </>
      ) : (
        words.notCheckedYet
      )}
    </span>
  </span>
)

/** The next step, with all records at once, and a warning if the records cannot work. */
const DnsState = ({ domain }: { domain: Domain }) => (
  <>
    {hostOf(domain) !== undefined && (
      <Warning>
        <Coded>{words.notPublic(hostOf(domain) ?? '')}</Coded>
      </Warning>
    )}
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3">
      <p className="max-w-2xl text-sm">
        {words.publish(domain.dnsRecords.zone)} {!domain.verified && words.watched}
      </p>
      <ZoneFile domain={domain} />
    </div>
  </>
)

/** POSTRIDER_HOSTNAME as used in the records, if it is not a public host name. */
function hostOf({ dnsRecords }: Domain): string | undefined {
  const host = dnsRecords.returnPath?.value.replace(/^rp\./, '')
  return host?.includes('.') ? undefined : host
}
