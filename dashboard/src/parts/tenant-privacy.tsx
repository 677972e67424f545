/** The privacy of a tenant: its settings, each one line of a form, and the counts of the data that is left. For owners of the organisation. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, patch } from '../api-client.ts'
import type { PrivacyReportResponse, Tenant, TenantsRetrievePrivacyData, TenantsUpdatePrivacyBody } from '../api-types.ts'
import { texts } from '../texts.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Button, Problem, Skeleton } from './basic-components.tsx'
import { Dialog } from './dialog.tsx'
import { Field, Select } from './form-controls.tsx'
import { Time } from './time-and-copy.tsx'
import { toast } from './toast.tsx'

const words = texts.privacy
const maxDays = 3650

type Name = keyof typeof words.fields
type Values = Record<Name, string>

/** The settings in their order. `days`: empty for null, whose meaning is `empty`. */
const fields: readonly { name: Name; kind: 'days' | 'audience'; least?: number; empty?: string }[] = [
  { name: 'contentDays', kind: 'days', least: 0, empty: words.unchanged },
  { name: 'hashAddressesAfterDays', kind: 'days', least: 1, empty: words.never },
  { name: 'recordDays', kind: 'days', least: 1, empty: words.unchanged },
  { name: 'contentVisibleTo', kind: 'audience' },
]

interface Doing {
  tenant: Tenant
  onClose: () => void
}

export function TenantPrivacy({ tenant, onClose }: Doing) {
  const path = `/v1/tenants/${tenant.id}/privacy`
  const { data, error } = useQuery({ queryKey: ['privacy', tenant.id], queryFn: () => get<TenantsRetrievePrivacyData>(path), gcTime: 0 })
  if (data) return <PrivacyForm tenant={tenant} path={path} saved={data} onClose={onClose} />
  return (
    <Dialog title={words.title(tenant.name)} onClose={onClose}>
      {error ? <Problem error={error} /> : <Skeleton lines={4} />}
    </Dialog>
  )
}

const shown = (saved: TenantsRetrievePrivacyData): Values =>
  Object.fromEntries(fields.map(({ name }) => [name, saved[name] === null ? '' : String(saved[name])])) as Values

const sent = ({ name, kind }: (typeof fields)[number], value: string) => [
  name,
  kind === 'audience' ? value : value === '' ? null : Number(value),
]

function PrivacyForm({ tenant, path, saved, onClose }: Doing & { path: string; saved: TenantsRetrievePrivacyData }) {
  const client = useQueryClient()
  const before = shown(saved)
  const [values, setValues] = useState(before)
  const run = async () => {
    const changed = fields.filter(({ name }) => values[name] !== before[name])
    if (changed.length === 0) return
    const body = Object.fromEntries(changed.map((one) => sent(one, values[one.name]))) as TenantsUpdatePrivacyBody
    await patch(path, body)
    toast(words.saved)
  }
  const done = async () => {
    onClose()
    await client.invalidateQueries({ queryKey: ['privacy', tenant.id] })
  }
  return (
    <FormDialog title={words.title(tenant.name)} action={texts.actions.save} run={run} onDone={done} onClose={onClose}>
      <p className="text-sm text-soft">{words.about}</p>
      {fields.map((one) => (
        <PrivacyField
          key={one.name}
          of={one}
          value={values[one.name]}
          onChange={(value) => setValues((now) => ({ ...now, [one.name]: value }))}
        />
      ))}
      <DataLeft tenantId={tenant.id} />
    </FormDialog>
  )
}

const audiences = Object.entries(words.audiences).map(([value, label]) => ({ value, label }))

function PrivacyField(props: { of: (typeof fields)[number]; value: string; onChange: (value: string) => void }) {
  const { of, value, onChange } = props
  const { label, help } = words.fields[of.name]
  if (of.kind === 'days') {
    return (
      <Field
        label={label}
        help={help}
        type="number"
        min={of.least}
        max={maxDays}
        placeholder={of.empty}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    )
  }
  return (
    <div>
      <Select label={label} value={value} choices={audiences} onChange={onChange} />
      <p className="mt-1 text-xs text-soft">{help}</p>
    </div>
  )
}

/** Counted when asked: many emails take seconds. */
function DataLeft({ tenantId }: { tenantId: string }) {
  const count = useMutation({ mutationFn: () => get<PrivacyReportResponse>(`/dashboard/api/tenants/${tenantId}/privacy-report`) })
  const kinds = Object.keys(words.kinds) as (keyof typeof words.kinds)[]
  return (
    <section aria-label={words.left} className="border-t border-line pt-3">
      <Button disabled={count.isPending} onClick={() => count.mutate()}>
        {words.count}
      </Button>
      <Problem error={count.error} />
      {count.data && (
        <dl className="mt-3 grid grid-cols-[1fr_auto] gap-x-4 gap-y-1 text-sm">
          {kinds.map((kind) => (
            <Left key={kind} name={words.kinds[kind]} of={count.data[kind]} />
          ))}
        </dl>
      )}
    </section>
  )
}

const Left = ({ name, of: { rows, oldest } }: { name: string; of: PrivacyReportResponse['events'] }) => (
  <div className="contents">
    <dt className="text-soft">{name}</dt>
    <dd className="text-right">
      {words.rows(rows)}{' '}
      {oldest !== null && (
        <span className="text-xs text-soft">
          {words.since} <Time at={oldest} />
        </span>
      )}
    </dd>
  </div>
)
