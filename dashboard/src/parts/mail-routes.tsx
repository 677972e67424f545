/** The routes of a tenant: add, forward, disable and delete them, and the MX records that bring their mail. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { get, type Page, patch, post, remove, withQuery } from '../api-client.ts'
import type { Domain, RoutesCreateData } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Confirm, FormDialog } from './action-dialogs.tsx'
import { Badge, Button, Problem, Section, Skeleton } from './basic-components.tsx'
import type { Column } from './data-table.tsx'
import { OneRecord } from './dns-record.tsx'
import { Field } from './form-controls.tsx'
import { Menu } from './menu.tsx'
import { Listing } from './paged-lists.tsx'
import { Time, Value } from './time-and-copy.tsx'
import { toast, toastProblem } from './toast.tsx'

const words = texts.mailIn
/** The record of each domain takes a request. */
const maxRecords = 5
const asItIs = { spellCheck: false, autoCapitalize: 'none', autoCorrect: 'off', inputMode: 'email', maxLength: 320 } as const

type Dialog = { what: 'edit' | 'remove'; route: RoutesCreateData }
interface Acts {
  onAsk: (what: Dialog['what'], route: RoutesCreateData) => void
  onSwitch: (route: RoutesCreateData) => void
}

const pathOf = ({ id, tenantId }: RoutesCreateData) => withQuery(`/v1/routes/${id}`, { tenantId })
const change = (route: RoutesCreateData, changes: { forwardTo?: string | null; enabled?: boolean }) =>
  patch<RoutesCreateData>(pathOf(route), { ...changes, tenantId: route.tenantId })

export function MailRoutes({ list }: { list: { data: Page<RoutesCreateData> | undefined; error: unknown } }) {
  const { mayChange } = useHere()
  const client = useQueryClient()
  const [dialog, setDialog] = useState<Dialog>()
  const refresh = () => client.invalidateQueries({ queryKey: ['routes'] })
  const close = () => setDialog(undefined)
  const done = async () => {
    close()
    await refresh()
  }
  const switching = useMutation({
    mutationFn: (route: RoutesCreateData) => change(route, { enabled: !route.enabled }),
    onSuccess: ({ address, enabled }) => {
      toast(enabled ? words.isEnabled(address) : words.isDisabled(address))
      return refresh()
    },
    onError: toastProblem,
  })
  const acts = { onAsk: (what: Dialog['what'], route: RoutesCreateData) => setDialog({ what, route }), onSwitch: switching.mutate }
  return (
    <>
      <Listing
        label={words.routes}
        list={list}
        columns={columnsOf(mayChange ? acts : undefined)}
        keyOf={(one) => one.id}
        empty={words.noRoutes}
      />
      {list.data && list.data.items.length > 0 && <MxRecords routes={list.data.items} />}
      {dialog?.what === 'edit' && <ForwardingForm route={dialog.route} onClose={close} onDone={done} />}
      {dialog?.what === 'remove' && (
        <Confirm
          title={texts.actions.removeTitle(dialog.route.address)}
          text={words.removeText}
          action={texts.actions.remove}
          run={() => remove(pathOf(dialog.route))}
          onDone={done}
          onClose={close}
        />
      )}
    </>
  )
}

const columnsOf = (acts: Acts | undefined): readonly Column<RoutesCreateData>[] => [
  {
    name: words.address,
    phone: 'title',
    by: (one) => one.address,
    cell: (one) => <span className="font-medium [overflow-wrap:anywhere]">{one.address}</span>,
  },
  {
    name: words.state,
    phone: 'side',
    by: (one) => Number(one.enabled),
    cell: ({ enabled }) =>
      enabled ? (
        <Badge tone="good">{words.enabled}</Badge>
      ) : (
        <Badge tone="none" title={words.disabledMeans}>
          {words.disabled}
        </Badge>
      ),
  },
  {
    name: words.forwardTo,
    isUsual: (one) => one.forwardTo === null,
    by: (one) => one.forwardTo ?? '',
    className: '[overflow-wrap:anywhere]',
    cell: ({ forwardTo }) => forwardTo ?? <span className="text-soft">{words.notForwarded}</span>,
  },
  { name: words.id, phone: 'none', cell: (one) => <Value name={words.id}>{one.id}</Value> },
  { name: words.added, phone: 'none', className: 'text-soft', by: (one) => one.createdAt, cell: (one) => <Time at={one.createdAt} /> },
  ...(acts ? [menuOf(acts)] : []),
]

const menuOf = ({ onAsk, onSwitch }: Acts): Column<RoutesCreateData> => ({
  name: texts.table.actions,
  isUnnamed: true,
  phone: 'menu',
  cell: (one) => (
    <span className="flex items-center md:justify-end">
      <Menu
        label={words.actionsOf(one.address)}
        actions={[
          { label: words.edit, onChoose: () => onAsk('edit', one) },
          { label: one.enabled ? words.disable : words.enable, onChoose: () => onSwitch(one) },
          { label: texts.actions.remove, isDanger: true, onChoose: () => onAsk('remove', one) },
        ]}
      />
    </span>
  ),
})

export function AddRoute({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const { inBody } = useHere()
  const client = useQueryClient()
  const [address, setAddress] = useState('')
  const [forwardTo, setForwardTo] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post<RoutesCreateData>('/v1/routes', { address: address.trim(), forwardTo: forwardTo.trim() || null, ...inBody })}
      onDone={async (made) => {
        toast(words.isAdded(made.address))
        onDone()
        await client.invalidateQueries({ queryKey: ['routes'] })
        // It has the MX record from now on.
        await client.invalidateQueries({ queryKey: ['domain', String(made.domainId)] })
      }}
      onClose={onClose}
    >
      <Field
        {...asItIs}
        label={words.address}
        required
        help={words.addressHelp}
        placeholder={words.example}
        value={address}
        onChange={(event) => setAddress(event.target.value)}
      />
      <Field
        {...asItIs}
        label={words.forwardTo}
        help={words.forwardHelp}
        placeholder={words.forwardExample}
        value={forwardTo}
        onChange={(event) => setForwardTo(event.target.value)}
      />
    </FormDialog>
  )
}

function ForwardingForm({ route, onClose, onDone }: { route: RoutesCreateData; onClose: () => void; onDone: () => Promise<void> }) {
  const [forwardTo, setForwardTo] = useState(route.forwardTo ?? '')
  return (
    <FormDialog
      title={words.editTitle(route.address)}
      action={texts.actions.save}
      run={() => change(route, { forwardTo: forwardTo.trim() || null })}
      onDone={onDone}
      onClose={onClose}
    >
      <Field
        {...asItIs}
        label={words.forwardTo}
        help={words.editHelp}
        placeholder={words.forwardExample}
        value={forwardTo}
        onChange={(event) => setForwardTo(event.target.value)}
      />
    </FormDialog>
  )
}

/** One for each domain of these routes. */
function MxRecords({ routes }: { routes: readonly RoutesCreateData[] }) {
  const domains = [...new Map(routes.map(({ domainId, mx }) => [domainId, mx.fullName]))]
  const others = domains.slice(maxRecords)
  return (
    <Section title={words.mx} about={words.mxHelp}>
      <div className="flex flex-col gap-3">
        {domains.slice(0, maxRecords).map(([id, name]) => (
          <MxRecord key={id} id={id} name={name} />
        ))}
      </div>
      {others.length > 0 && (
        <p className="mt-3 flex flex-wrap gap-x-3 text-sm text-soft">
          {words.moreDomains(others.length)}
          {others.map(([id, name]) => (
            <Link key={id} to="/domains/$domainId" params={{ domainId: String(id) }} search={{}} className="link">
              {name}
            </Link>
          ))}
        </p>
      )}
    </Section>
  )
}

function MxRecord({ id, name }: { id: number; name: string }) {
  const { mayChange } = useHere()
  const client = useQueryClient()
  const key = ['domain', String(id)]
  const { data: domain, error } = useQuery({ queryKey: key, queryFn: () => get<Domain>(`/v1/domains/${id}`) })
  const check = useMutation({
    mutationFn: () => post<Domain>(`/v1/domains/${id}/verify`),
    onSuccess: (checked) => client.setQueryData(key, checked),
    onError: toastProblem,
  })
  const record = domain?.dnsRecords.receiving
  if (error) return <Problem error={error} />
  if (!domain) return <Skeleton lines={3} />
  if (!record) return null
  const checkAgain = (
    <Button small disabled={check.isPending} onClick={() => check.mutate()}>
      {check.isPending ? texts.dns.checking : texts.dns.check}
    </Button>
  )
  return <OneRecord title={words.mxOf(name)} record={record} zone={domain.dnsRecords.zone} aside={mayChange && checkAgain} />
}
