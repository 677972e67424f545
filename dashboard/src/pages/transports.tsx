/** SMTP relays, their state, and the shares of the mail that they take. For owners of the organisation. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { Transport, TransportRule, TransportsListData } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Badge, Button, Coded, Empty, Heading, Problem, Section } from '../parts/basic-components.tsx'
import { type Column, DataTable, TableSkeleton } from '../parts/data-table.tsx'
import { Menu } from '../parts/menu.tsx'
import { QuietState } from '../parts/quiet-state.tsx'
import { ShareDialog, type SharedMail } from '../parts/share-dialog.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { TestTransport, TransportForm } from '../parts/transport-dialogs.tsx'
import { type Counts, useMailOfTransports, WeekOfMail } from '../parts/transport-mail.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 5000
const words = texts.transports

type Opened =
  | { what: 'add' }
  | { what: 'edit' | 'test' | 'remove'; transport: Transport }
  | { what: 'share'; mail: SharedMail | undefined; transport: string | undefined }

export function TransportsPage() {
  const client = useQueryClient()
  const [opened, setOpened] = useState<Opened>()
  const { data, error } = useQuery({
    queryKey: ['transports'],
    queryFn: () => get<TransportsListData>('/v1/transports'),
    refetchInterval: everyMs,
  })
  const mail = useMailOfTransports(data?.transports ?? [])
  const close = () => setOpened(undefined)
  const done = async () => {
    close()
    await client.invalidateQueries({ queryKey: ['transports'] })
  }
  const isEmpty = data?.transports.length === 0
  const add = (
    <Button kind="main" onClick={() => setOpened({ what: 'add' })}>
      {words.add}
    </Button>
  )
  return (
    <>
      <Heading title={texts.pages.transports} about={words.intro(words.defaults[data?.default ?? 'mx'])}>
        {!isEmpty && add}
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={3} />}
      {isEmpty && (
        <Empty title={words.emptyTitle} action={add}>
          {words.empty}
        </Empty>
      )}
      {data && !isEmpty && (
        <DataTable
          label={texts.pages.transports}
          columns={columnsOf(data, mail, (what, transport) => setOpened({ what, transport }))}
          items={[undefined, ...data.transports]}
          keyOf={(one) => one?.name ?? data.default}
          isWhole
        />
      )}
      {data && (data.transports.length > 0 || data.rules.length > 0) && (
        <Shares list={data} onChange={(mail, transport) => setOpened({ what: 'share', mail, transport })} />
      )}
      {data && opened && <OpenedDialog opened={opened} list={data} onClose={close} onDone={done} />}
    </>
  )
}

/** Undefined: the default, which has no settings here. */
type Row = Transport | undefined
type OnAsk = (what: 'edit' | 'test' | 'remove', transport: Transport) => void
const names = words.names

/** Long because each column is an element of one list. */
const columnsOf = (
  list: TransportsListData,
  mailOf: (name: string | undefined) => Counts | undefined,
  onAsk: OnAsk,
): readonly Column<Row>[] => [
  {
    name: names.transport,
    phone: 'title',
    by: (one) => one?.name ?? '',
    cell: (one) =>
      one ? (
        <>
          <span className="font-medium">{one.name}</span>
          <span className="block font-mono text-xs text-soft [overflow-wrap:anywhere]">
            {one.host}:{one.port}
          </span>
        </>
      ) : (
        <>
          <span className="font-medium">{words.defaultName[list.default]}</span>
          <span className="block text-xs text-soft">
            <Coded>{words.defaultMeans[list.default]}</Coded>
          </span>
        </>
      ),
  },
  { name: names.state, phone: 'side', by: (one) => one?.state ?? '', cell: (one) => one && <State of={one} /> },
  {
    name: names.week,
    phone: 'line',
    isNumber: true,
    by: (one) => mailOf(one?.name)?.accepted ?? 0,
    cell: (one) => <WeekOfMail of={mailOf(one?.name)} isExpected={one !== undefined && shareOf(list, one.name) !== undefined} />,
  },
  {
    name: names.share,
    phone: 'line',
    className: 'tabular-nums',
    isUsual: (one) => one !== undefined && shareOf(list, one.name) === undefined,
    by: (one) => (one ? (shareOfAll(list, one.name) ?? -1) : rest(list.rules.find(isOfAllMail))),
    cell: (one) => (one ? <OwnShare list={list} name={one.name} /> : <DefaultShare list={list} />),
  },
  {
    name: names.connection,
    phone: 'full',
    className: 'text-xs text-soft tabular-nums md:max-w-72',
    by: (one) => one?.connections ?? 0,
    cell: (one) => one && <Connection of={one} />,
  },
  ...(list.transports.every(isUsualFallback)
    ? []
    : [{ name: names.fallback, isUsual: isUsualFallback, cell: (one: Row) => one && words.whenDown(one) }]),
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'menu',
    cell: (one) =>
      one && (
        <span className="flex items-center gap-1 md:justify-end">
          <Button small aria-label={words.testOf(one.name)} onClick={() => onAsk('test', one)}>
            {words.test}
          </Button>
          <Menu
            label={words.actionsOf(one.name)}
            actions={[
              { label: words.edit, onChoose: () => onAsk('edit', one) },
              { label: texts.actions.remove, isDanger: true, onChoose: () => onAsk('remove', one) },
            ]}
          />
        </span>
      ),
  },
]

const isUsualFallback = (one: Row) => one === undefined || (one.failover && one.fallback === null)

const Connection = ({ of: { tls, username, connections, rate } }: { of: Transport }) => (
  <>
    <span className="block [overflow-wrap:anywhere]">
      {words.tls[tls]} · {username === null ? words.noLogin : words.loginAs(username)}
    </span>
    <span className="block">
      {words.connectionsOf(connections)} · {rate === null ? words.anyRate : words.rateOf(rate)}
    </span>
  </>
)

const isOfAllMail = ({ tenantId, domain, tag }: TransportRule) => tenantId === null && domain === null && tag === null

/** Percent of all mail; undefined: no rule for all mail names it. */
const shareOfAll = ({ rules }: TransportsListData, name: string) =>
  rules.find(isOfAllMail)?.shares.find(({ transport }) => transport === name)?.percent

/** The rule of the largest part of mail that the transport takes a share of: all mail, or the first. Undefined: it has no share. */
function shareOf(list: TransportsListData, name: string) {
  const named = list.rules.flatMap((rule) =>
    rule.shares.filter(({ transport }) => transport === name).map(({ percent }) => ({ rule, percent })),
  )
  const first = named.find(({ rule }) => isOfAllMail(rule)) ?? named[0]
  return first && { ...first, isOnly: named.length === 1 }
}

/** Such as "70% of news.example". */
function OwnShare({ list, name }: { list: TransportsListData; name: string }) {
  const { nameOf } = useHere()
  const found = shareOf(list, name)
  if (!found) return <span className="text-soft">{words.noShare}</span>
  const { domain, tag } = found.rule
  const mail = domain !== null && tag === null ? domain : words.mailOf(nameOf)(found.rule)
  return words.shareOf(found.percent, mail, found.isOnly)
}

/** Such as "All other mail, and 10% of news.example". */
function DefaultShare({ list }: { list: TransportsListData }) {
  const { nameOf } = useHere()
  const parts = list.rules.filter((rule) => rest(rule) > 0)
  const ofAll = list.rules.find(isOfAllMail)
  if (ofAll)
    return words.shareOf(
      rest(ofAll),
      words.mailOf(nameOf)(ofAll),
      parts.every((rule) => rule === ofAll),
    )
  const [part] = parts
  if (!part) return words.otherMail
  const { domain, tag } = part
  const mail = domain !== null && tag === null ? domain : words.mailOf(nameOf)(part)
  return words.otherMailAnd(words.shareOf(rest(part), mail, parts.length === 1))
}

function State({ of: { state, down } }: { of: Transport }) {
  const { tenants } = useHere()
  if (state === 'up') return <QuietState>{words.up}</QuietState>
  return (
    <>
      <Badge tone="bad">{words.down}</Badge>
      {down.map(({ tenantId, reason, since, until }) => (
        <span key={tenantId ?? ''} className="mt-1 block max-w-56 text-xs text-soft">
          {tenantId !== null && words.forTenant(tenants.find(({ id }) => id === tenantId)?.name ?? tenantId)} {words.reasons[reason]},{' '}
          <Time at={since} />. {words.nextTry} <Time at={until} />
        </span>
      ))}
    </>
  )
}

interface SharesProps {
  list: TransportsListData
  onChange: (mail: SharedMail | undefined, transport: string | undefined) => void
}

function Shares({ list, onChange }: SharesProps) {
  const { tenants } = useHere()
  const mailText = words.mailOf((id) => tenants.find((one) => one.id === id)?.name ?? id)
  const set = <Button onClick={() => onChange(undefined, undefined)}>{words.setShare}</Button>
  if (list.rules.length === 0) {
    return (
      <Section title={words.shares}>
        <Empty action={set}>{words.noShares(words.defaults[list.default])}</Empty>
      </Section>
    )
  }
  return (
    <Section title={words.shares} about={words.sharesHelp} aside={set}>
      <ul aria-label={words.shares} className="divide-y divide-line rounded-lg border border-line text-sm">
        {list.rules.map((rule) => (
          <li key={JSON.stringify([rule.tenantId, rule.domain, rule.tag])} className="grid gap-2 px-4 py-3">
            <p className="font-medium first-letter:uppercase [overflow-wrap:anywhere]">{mailText(rule)}</p>
            <OneRule of={rule} usual={list.default} mail={mailText(rule)} onChange={(transport) => onChange(rule, transport)} />
          </li>
        ))}
        {!list.rules.some(isOfAllMail) && (
          <li className="flex flex-wrap items-center gap-x-3 px-4 py-3">
            <p className="font-medium">{words.otherMail}</p>
            <p className="text-soft">
              {words.defaultName[list.default]} <span className="tabular-nums">{words.percent(100)}</span>
            </p>
          </li>
        )}
      </ul>
    </Section>
  )
}

/** Written out, because the build collects class names from the source. No colour of a state, because a share is none. */
const parts = ['bg-ink', 'bg-soft', 'bg-edge'] as const

const OneRule = (props: { of: TransportRule; usual: 'mx' | 'relay'; mail: string; onChange: (transport: string) => void }) => (
  <div className="min-w-0">
    <div aria-hidden="true" className="mb-2 flex h-2 gap-px overflow-hidden rounded-full bg-line ring-1 ring-edge/60 ring-inset">
      {props.of.shares.map(({ transport, percent }, index) => (
        <span key={transport} className={parts[index % parts.length]} style={{ width: `${percent}%` }} />
      ))}
    </div>
    <ul className="flex flex-wrap gap-x-6 gap-y-1">
      {props.of.shares.map(({ transport, percent }, index) => (
        <li key={transport} className="flex items-center gap-2">
          <span className={`size-2 shrink-0 rounded-[2px] ${parts[index % parts.length]}`} />
          <span className="min-w-0 font-medium [overflow-wrap:anywhere]">{transport}</span>
          <span className="tabular-nums">{words.percent(percent)}</span>
          <Button small kind="quiet" aria-label={words.changeOf(transport, props.mail)} onClick={() => props.onChange(transport)}>
            {words.change}
          </Button>
        </li>
      ))}
      {rest(props.of) > 0 && (
        <li className="flex min-h-7 items-center gap-2 text-soft">
          <span className="size-2 shrink-0 rounded-[2px] bg-line ring-1 ring-edge ring-inset" />
          {words.defaultName[props.usual]}
          <span className="tabular-nums">{words.percent(rest(props.of))}</span>
        </li>
      )}
    </ul>
  </div>
)

/** Percent of the default. */
const rest = (rule: TransportRule | undefined) => (rule?.shares ?? []).reduce((sum, { percent }) => sum - percent, 100)

interface Doing {
  list: TransportsListData
  onClose: () => void
  onDone: () => Promise<void>
}

function OpenedDialog({ opened, list, onClose, onDone }: Doing & { opened: Opened }) {
  if (opened.what === 'add') return <TransportForm others={list.transports} onClose={onClose} onDone={onDone} />
  if (opened.what === 'share')
    return <ShareDialog list={list} mail={opened.mail} transport={opened.transport} onClose={onClose} onDone={onDone} />
  const { transport } = opened
  if (opened.what === 'edit') return <TransportForm transport={transport} others={list.transports} onClose={onClose} onDone={onDone} />
  if (opened.what === 'test')
    return <TestTransport name={transport.name} run={() => post(`/v1/transports/${transport.name}/test`)} onClose={onClose} />
  return (
    <Confirm
      title={texts.actions.removeTitle(transport.name)}
      text={words.removeText}
      action={texts.actions.remove}
      run={() => remove(`/v1/transports/${transport.name}`)}
      onDone={onDone}
      onClose={onClose}
    />
  )
}
