/** The dialogs of the page of tenants: add, edit, privacy, pause, resume, delete. */
import { useState } from 'react'
import { patch, post, remove } from '../api-client.ts'
import type { Tenant } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Confirm, FormDialog } from './action-dialogs.tsx'
import { Field, Select } from './form-controls.tsx'
import { TenantPrivacy } from './tenant-privacy.tsx'

const words = texts.tenants
export const statuses = Object.entries(words.status).map(([value, label]) => ({ value, label }))

export type TenantDialog = { what: 'edit' | 'privacy' | 'pause' | 'resume' | 'remove'; tenant: Tenant }

interface Doing {
  onClose: () => void
  onDone: () => Promise<void>
}

export function OpenedDialog({ opened, ceiling, ...doing }: Doing & { opened: TenantDialog; ceiling: number | undefined }) {
  const { what, tenant } = opened
  if (what === 'edit') return <EditTenant tenant={tenant} ceiling={ceiling} {...doing} />
  if (what === 'privacy') return <TenantPrivacy tenant={tenant} onClose={doing.onClose} />
  if (what === 'pause') return <PauseTenant tenant={tenant} {...doing} />
  if (what === 'resume') {
    return (
      <Confirm
        title={words.resumeTitle(tenant.name)}
        text={words.resumeText}
        action={words.resume}
        run={() => post(`/dashboard/api/tenants/${tenant.id}/resume`)}
        {...doing}
      />
    )
  }
  return (
    <Confirm
      title={texts.actions.removeTitle(tenant.name)}
      text={words.removeText}
      action={texts.actions.remove}
      run={() => remove(`/v1/tenants/${tenant.id}`)}
      {...doing}
    />
  )
}

export function AddTenant({ onClose, onDone }: Doing) {
  const [name, setName] = useState('')
  return (
    <FormDialog
      title={words.addTitle}
      action={texts.actions.add}
      run={() => post('/v1/tenants', { name })}
      onDone={onDone}
      onClose={onClose}
    >
      <Field label={words.name} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
    </FormDialog>
  )
}

function EditTenant({ tenant, ceiling, onClose, onDone }: Doing & { tenant: Tenant; ceiling: number | undefined }) {
  const [name, setName] = useState(tenant.name)
  const [status, setStatus] = useState<string>(tenant.status)
  const [send, setSend] = useState(ceiling === undefined ? '' : String(ceiling))
  const run = async () => {
    // Only these: the status may have been changed elsewhere since.
    const changes = { ...(name === tenant.name ? {} : { name }), ...(status === tenant.status ? {} : { status }) }
    if (Object.keys(changes).length > 0) await patch(`/v1/tenants/${tenant.id}`, changes)
    if (send !== String(ceiling ?? ''))
      await post(`/dashboard/api/tenants/${tenant.id}/limit`, { sendPerHour: send === '' ? null : Number(send) })
  }
  return (
    <FormDialog title={words.editTitle(tenant.name)} action={texts.actions.save} run={run} onDone={onDone} onClose={onClose}>
      <Field label={words.name} required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} />
      {!tenant.isDefault && <Select label={words.statusLabel} value={status} onChange={setStatus} choices={statuses} />}
      <Field
        label={words.ceiling}
        help={words.ceilingHelp}
        type="number"
        min={1}
        max={1_000_000_000}
        value={send}
        onChange={(event) => setSend(event.target.value)}
      />
    </FormDialog>
  )
}

function PauseTenant({ tenant, onClose, onDone }: Doing & { tenant: Tenant }) {
  const [reason, setBecause] = useState('')
  return (
    <FormDialog
      title={words.pauseTitle(tenant.name)}
      action={words.pause}
      run={() => post(`/dashboard/api/tenants/${tenant.id}/pause`, reason ? { reason } : {})}
      onDone={onDone}
      onClose={onClose}
    >
      <p className="text-sm">{words.pauseText}</p>
      <Field label={words.reason} maxLength={200} value={reason} onChange={(event) => setBecause(event.target.value)} />
    </FormDialog>
  )
}
