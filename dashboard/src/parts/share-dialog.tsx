/** Sets the share of a transport, of all mail or of a part, with a slider and a number that move together. */
import { useId, useState } from 'react'
import { post } from '../api-client.ts'
import type { TransportRule, TransportsListData } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Field, Select } from './form-controls.tsx'
import { OnlyNewestTenants } from './only-newest-tenants.tsx'

/** The mail of a rule. */
export type SharedMail = Pick<TransportRule, 'tenantId' | 'domain' | 'tag'>

const words = texts.transports
const whole = 100

interface ShareDialogProps {
  list: TransportsListData
  /** The mail of a rule to change; undefined: the form asks. */
  mail: SharedMail | undefined
  /** The transport to change; undefined: the form asks. */
  transport: string | undefined
  onClose: () => void
  onDone: () => Promise<void>
}

const isSame = (one: SharedMail, other: SharedMail) =>
  one.tenantId === other.tenantId && one.domain === other.domain && one.tag === other.tag

export function ShareDialog({ list, mail, transport, onClose, onDone }: ShareDialogProps) {
  const { tenants } = useHere()
  const [name, setName] = useState(transport ?? list.transports[0]?.name ?? list.default)
  const [tenantId, setTenantId] = useState('')
  const [domain, setDomain] = useState('')
  const [tag, setTag] = useState('')
  const scope = mail ?? { tenantId: tenantId || null, domain: domain.trim().toLowerCase() || null, tag: tag.trim() || null }
  const shares = list.rules.find((one) => isSame(one, scope))?.shares ?? []
  const others = shares.reduce((sum, one) => (one.transport === name ? sum : sum + one.percent), 0)
  const [percent, setPercent] = useState(shares.find((one) => one.transport === name)?.percent ?? 0)
  const mailText = words.mailOf((id) => tenants.find((one) => one.id === id)?.name ?? id)(scope)
  const builtIn = list.default === 'relay' ? ['mx', 'relay'] : ['mx']
  const choices = [...list.transports.map((one) => one.name), ...builtIn].map((value) => ({ value, label: value }))
  return (
    <FormDialog
      title={mail ? words.shareTitle(name, mailText) : words.setShare}
      action={texts.actions.save}
      run={() => post(`/v1/transports/${name}/share`, { percent, ...scope })}
      onDone={onDone}
      onClose={onClose}
    >
      {!transport && <Select label={names.transport} value={name} choices={choices} onChange={setName} />}
      <Percent value={percent} max={whole - others} onChange={setPercent} />
      {!mail && (
        <>
          {tenants.length > 1 && (
            <Select
              label={words.onlyTenant}
              value={tenantId}
              choices={[{ value: '', label: words.anyTenant }, ...tenants.map(({ id, name: label }) => ({ value: id, label }))]}
              onChange={setTenantId}
            />
          )}
          <OnlyNewestTenants />
          <Field
            label={words.onlyDomain}
            help={words.onlyHelp}
            maxLength={253}
            value={domain}
            onChange={(event) => setDomain(event.target.value)}
          />
          <Field label={words.onlyTag} maxLength={1000} value={tag} onChange={(event) => setTag(event.target.value)} />
        </>
      )}
      <p aria-live="polite" className="text-sm text-soft">
        {words.shareMeans(percent, name, mailText, whole - others - percent)}
      </p>
    </FormDialog>
  )
}

const names = words.names

function Percent({ value, max, onChange }: { value: number; max: number; onChange: (percent: number) => void }) {
  const id = useId()
  const set = (text: string) => onChange(Math.min(whole, Math.max(0, Math.round(Number(text) || 0))))
  return (
    <div className="grid grid-cols-[1fr_5.5rem] items-end gap-3">
      <div className="flex min-w-0 flex-col gap-1">
        <label htmlFor={id} className="text-xs font-medium text-soft">
          {words.slider}
        </label>
        <input
          id={id}
          type="range"
          min={0}
          max={whole}
          step={1}
          value={value}
          aria-valuetext={words.percent(value)}
          onChange={(event) => set(event.target.value)}
          className="min-h-8 w-full accent-ink pointer-coarse:min-h-10"
        />
      </div>
      <Field
        label={words.percentLabel}
        type="number"
        min={0}
        max={max}
        required
        value={value}
        onChange={(event) => set(event.target.value)}
      />
    </div>
  )
}
