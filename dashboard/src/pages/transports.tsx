/** SMTP relays, their state, and the shares of the mail that they take. For owners of the organisation. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, remove } from '../api-client.ts'
import type { Transport, TransportRule, TransportsListData } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Badge, Button, Empty, Heading, Problem, Section } from '../parts/basic-components.tsx'
import { type Column, DataTable, Table, TableSkeleton } from '../parts/data-table.tsx'
import { ShareDialog, type SharedMail } from '../parts/share-dialog.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { TestTransport, TransportForm } from '../parts/transport-dialogs.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const everyMs = 5000
const words = texts.transports

type Asked =
  | { what: 'add' }
  | { what: 'edit' | 'test' | 'remove'; transport: Transport }
  | { what: 'share'; mail: SharedMail | undefined; transport: string | undefined }

export function TransportsPage() {
  const client = useQueryClient()
  const [asked, setAsked] = useState<Asked>()
  const { data, error } = useQuery({
    queryKey: ['transports'],
    queryFn: () => get<TransportsListData>('/v1/transports'),
    refetchInterval: everyMs,
  })
  const close = () => setAsked(undefined)
  const done = async () => {
    close()
    await client.invalidateQueries({ queryKey: ['transports'] })
  }
  return (
    <>
      <Heading title={texts.pages.transports} about={words.intro(words.defaults[data?.default ?? 'mx'])}>
        <Button kind="main" onClick={() => setAsked({ what: 'add' })}>
          {words.add}
        </Button>
      </Heading>
      <Problem error={error} />
      {!data && !error && <TableSkeleton rows={3} />}
      {data?.transports.length === 0 && <Empty>{words.empty}</Empty>}
      {data && data.transports.length > 0 && (
        <DataTable
          label={texts.pages.transports}
          columns={columnsOf((what, transport) => setAsked({ what, transport }))}
          items={data.transports}
          keyOf={(one) => one.name}
          isWhole
        />
      )}
      {data && (data.transports.length > 0 || data.rules.length > 0) && (
        <Shares list={data} onChange={(mail, transport) => setAsked({ what: 'share', mail, transport })} />
      )}
      {data && asked && <AskedDialog asked={asked} list={data} onClose={close} onDone={done} />}
    </>
  )
}

type OnAsk = (what: 'edit' | 'test' | 'remove', transport: Transport) => void
const names = words.names

const columnsOf = (onAsk: OnAsk): readonly Column<Transport>[] => [
  {
    name: names.transport,
    phone: 'title',
    by: (one) => one.name,
    cell: ({ name, host, port }) => (
      <>
        <span className="font-medium">{name}</span>
        <span className="block font-mono text-xs text-soft [overflow-wrap:anywhere]">
          {host}:{port}
        </span>
      </>
    ),
  },
  { name: names.state, phone: 'side', by: (one) => one.state, cell: (one) => <State of={one} /> },
  {
    name: names.login,
    className: 'text-soft',
    cell: ({ tls, username }) => (
      <>
        {words.tls[tls]}
        <span className="block text-xs [overflow-wrap:anywhere]">{username ?? words.noLogin}</span>
      </>
    ),
  },
  {
    name: names.limits,
    className: 'text-soft tabular-nums',
    by: (one) => one.connections,
    cell: ({ connections, rate }) => (
      <>
        {words.connectionsOf(connections)}
        <span className="block text-xs">{rate === null ? words.anyRate : words.rateOf(rate)}</span>
      </>
    ),
  },
  { name: names.fallback, className: 'text-soft', cell: (one) => words.whenDown(one) },
  {
    name: texts.table.actions,
    isUnnamed: true,
    phone: 'line',
    cell: (one) => (
      <span className="flex flex-wrap gap-1.5 md:justify-end">
        <Button small aria-label={words.testOf(one.name)} onClick={() => onAsk('test', one)}>
          {words.test}
        </Button>
        <Button small aria-label={words.editOf(one.name)} onClick={() => onAsk('edit', one)}>
          {words.edit}
        </Button>
        <Button small kind="danger" aria-label={texts.actions.removeOf(one.name)} onClick={() => onAsk('remove', one)}>
          {texts.actions.remove}
        </Button>
      </span>
    ),
  },
]

function State({ of: { state, down } }: { of: Transport }) {
  const { tenants } = useHere()
  if (state === 'up') return <Badge tone="good">{words.up}</Badge>
  return (
    <>
      <Badge tone="bad">{words.down}</Badge>
      {down.map(({ tenantId, reason, since, until }) => (
        <span key={tenantId ?? ''} className="mt-1 block text-xs text-soft">
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
  return (
    <Section title={words.shares} aside={<Button onClick={() => onChange(undefined, undefined)}>{words.setShare}</Button>}>
      {list.rules.length === 0 && <Empty>{words.noShares(words.defaults[list.default])}</Empty>}
      {list.rules.length > 0 && (
        <Table label={words.shares} columns={words.shareColumns}>
          {list.rules.map((rule) => (
            <tr key={JSON.stringify([rule.tenantId, rule.domain, rule.tag])}>
              <td className="font-medium [overflow-wrap:anywhere]">{mailText(rule)}</td>
              <td>
                <ShareList of={rule} usual={list.default} mail={mailText(rule)} onChange={(transport) => onChange(rule, transport)} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

const ShareList = (props: { of: TransportRule; usual: 'mx' | 'relay'; mail: string; onChange: (transport: string) => void }) => (
  <ul className="flex flex-col gap-1">
    {props.of.shares.map(({ transport, percent }) => (
      <li key={transport} className="flex flex-wrap items-center gap-2">
        <span className="w-12 text-right tabular-nums">{words.percent(percent)}</span>
        <span className="font-medium">{transport}</span>
        <Button small aria-label={words.changeOf(transport, props.mail)} onClick={() => props.onChange(transport)}>
          {words.change}
        </Button>
      </li>
    ))}
    {rest(props.of) > 0 && (
      <li className="flex items-center gap-2 text-soft">
        <span className="w-12 text-right tabular-nums">{words.percent(rest(props.of))}</span>
        {words.theDefault(props.usual)}
      </li>
    )}
  </ul>
)

const rest = ({ shares }: TransportRule) => shares.reduce((sum, { percent }) => sum - percent, 100)

interface Doing {
  list: TransportsListData
  onClose: () => void
  onDone: () => Promise<void>
}

function AskedDialog({ asked, list, onClose, onDone }: Doing & { asked: Asked }) {
  if (asked.what === 'add') return <TransportForm others={list.transports} onClose={onClose} onDone={onDone} />
  if (asked.what === 'share')
    return <ShareDialog list={list} mail={asked.mail} transport={asked.transport} onClose={onClose} onDone={onDone} />
  const { transport } = asked
  if (asked.what === 'edit') return <TransportForm transport={transport} others={list.transports} onClose={onClose} onDone={onDone} />
  if (asked.what === 'test')
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
