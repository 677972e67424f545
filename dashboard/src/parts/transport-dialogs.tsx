/** The form of a transport, new or changed, and the result of a test. A stored password is never shown. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { patch, post } from '../api-client.ts'
import type { Transport, TransportsTestData } from '../api-types.ts'
import { texts } from '../texts.ts'
import { FormDialog } from './action-dialogs.tsx'
import { Button, Problem, Skeleton } from './basic-components.tsx'
import { Dialog } from './dialog.tsx'
import { Field, PasswordField, Select } from './form-controls.tsx'
import { Pre } from './time-and-copy.tsx'

const words = texts.transports
const tlsModes = ['required', 'implicit', 'opportunistic'] as const
type Tls = Transport['tls']
/** Values of the menu beside the names of transports, which have no colon. */
const toDefault = ':default'
const toNone = ':none'

interface TransportFormProps {
  /** undefined: a new one. */
  transport?: Transport
  others: readonly Transport[]
  onClose: () => void
  onDone: () => Promise<void>
}

interface Values {
  name: string
  host: string
  port: string
  tls: Tls
  username: string
  password: string
  connections: string
  rate: string
  whenDown: string
}

const valuesOf = (now: Transport | undefined): Values => ({
  name: now?.name ?? '',
  host: now?.host ?? '',
  port: String(now?.port ?? 587),
  tls: now?.tls ?? 'required',
  username: now?.username ?? '',
  password: '',
  connections: String(now?.connections ?? 20),
  rate: now?.rate == null ? '' : String(now.rate),
  whenDown: now && !now.failover ? toNone : (now?.fallback ?? toDefault),
})

const bodyOf = ({ host, tls, port, username, password, connections, rate, whenDown }: Values) => ({
  host: host.trim(),
  tls,
  port: Number(port),
  username: username === '' ? null : username,
  ...(password === '' ? {} : { password }),
  connections: Number(connections),
  rate: rate === '' ? null : Number(rate),
  failover: whenDown !== toNone,
  ...(whenDown === toNone ? {} : { fallback: whenDown === toDefault ? null : whenDown }),
})

/** Long because it is one form: its fields in order. */
export function TransportForm({ transport, others, onClose, onDone }: TransportFormProps) {
  const [values, setValues] = useState(() => valuesOf(transport))
  const set = (change: Partial<Values>) => setValues({ ...values, ...change })
  const run = () =>
    transport
      ? patch(`/v1/transports/${transport.name}`, bodyOf(values))
      : post('/v1/transports', { name: values.name.trim(), ...bodyOf(values) })
  const fallbacks = others.filter(({ name }) => name !== transport?.name).map(({ name }) => ({ value: name, label: words.takes(name) }))
  return (
    <FormDialog
      title={transport ? words.editTitle(transport.name) : words.addTitle}
      action={transport ? texts.actions.save : texts.actions.add}
      run={run}
      onDone={onDone}
      onClose={onClose}
    >
      {!transport && (
        <Field
          label={words.name}
          help={words.nameHelp}
          required
          maxLength={63}
          autoCapitalize="none"
          value={values.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      )}
      <div className="grid grid-cols-[1fr_6rem] gap-3">
        <Field label={words.host} required maxLength={253} value={values.host} onChange={(event) => set({ host: event.target.value })} />
        <Field
          label={words.port}
          type="number"
          min={1}
          max={65_535}
          required
          value={values.port}
          onChange={(event) => set({ port: event.target.value })}
        />
      </div>
      <Select
        label={words.tlsLabel}
        value={values.tls}
        choices={tlsModes.map((value) => ({ value, label: words.tlsLong[value] }))}
        onChange={(tls) => set({ tls: tls as Tls })}
      />
      <Login values={values} isKept={transport?.username != null} onChange={set} />
      <div className="grid grid-cols-2 items-start gap-3">
        <Field
          label={words.connections}
          type="number"
          min={1}
          max={1000}
          required
          value={values.connections}
          onChange={(event) => set({ connections: event.target.value })}
        />
        <Field
          label={words.rate}
          help={words.rateHelp}
          type="number"
          min={0.001}
          max={100_000}
          step="any"
          value={values.rate}
          onChange={(event) => set({ rate: event.target.value })}
        />
      </div>
      <Select
        label={words.whenDownLabel}
        value={values.whenDown}
        choices={[{ value: toDefault, label: words.takesDefault }, ...fallbacks, { value: toNone, label: words.waits }]}
        onChange={(whenDown) => set({ whenDown })}
      />
    </FormDialog>
  )
}

function Login({ values, isKept, onChange }: { values: Values; isKept: boolean; onChange: (change: Partial<Values>) => void }) {
  return (
    <>
      <Field
        label={words.username}
        help={words.usernameHelp}
        maxLength={255}
        autoComplete="off"
        autoCapitalize="none"
        value={values.username}
        onChange={(event) => onChange({ username: event.target.value })}
      />
      {values.username !== '' && (
        <PasswordField
          label={words.password}
          {...(isKept ? { help: words.passwordHelp } : {})}
          required={!isKept}
          maxLength={4096}
          autoComplete="new-password"
          value={values.password}
          onChange={(event) => onChange({ password: event.target.value })}
        />
      )}
    </>
  )
}

/** Runs the test once, when it opens. */
export function TestTransport({ name, run, onClose }: { name: string; run: () => Promise<TransportsTestData>; onClose: () => void }) {
  const { data, error } = useQuery({
    queryKey: ['transport-test', name],
    queryFn: run,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  return (
    <Dialog title={words.testTitle(name)} onClose={onClose}>
      <Problem error={error} />
      {!data && !error && <Skeleton lines={2} />}
      {data && (
        <p role="status" className={`text-sm font-medium ${data.works ? 'text-good' : 'text-bad'}`}>
          {data.works ? words.works(data.address ?? '', data.secure) : words.fails(data.message)}
        </p>
      )}
      {data && data.conversation !== '' && (
        <div className="mt-3">
          <Pre label={words.conversation}>{data.conversation}</Pre>
        </div>
      )}
      <div className="mt-4 flex justify-end">
        <Button onClick={onClose}>{texts.actions.close}</Button>
      </div>
    </Dialog>
  )
}
