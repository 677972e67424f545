/**
 * Two-factor authentication of the signed-in person: an authenticator app is added by QR code and a first code, and recovery codes are
 * shown once.
 */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { encode } from 'uqr'
import { get, post, save } from '../api-client.ts'
import type { EnrolmentResponse, RecoveryCodesResponse, SecondFactorResponse } from '../api-types.ts'
import { FormDialog } from '../parts/action-dialogs.tsx'
import { Badge, Button, SettingRow } from '../parts/basic-components.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Field, PasswordField } from '../parts/form-controls.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { Code, Copy, Pre, Time } from '../parts/time-and-copy.tsx'
import { texts } from '../texts.ts'

const { secondFactor: words } = texts
const api = '/dashboard/api/second-factor'

type Doing = 'begin' | 'renew' | 'remove' | undefined

export function SecondFactor() {
  const client = useQueryClient()
  const [doing, setDoing] = useState<Doing>()
  const [begun, setBegun] = useState<EnrolmentResponse>()
  const [codes, setCodes] = useState<string[]>()
  const { data, error } = useQuery({ queryKey: ['second-factor'], queryFn: () => get<SecondFactorResponse>(api) })
  const refresh = () => client.invalidateQueries({ queryKey: ['second-factor'] })
  const close = () => setDoing(undefined)
  const showCodes = async ({ recoveryCodes }: RecoveryCodesResponse) => {
    setBegun(undefined)
    close()
    setCodes(recoveryCodes)
    await refresh()
  }
  return (
    <>
      {!data && (
        <div className="px-4 py-3">
          <Waiting error={error} />
        </div>
      )}
      {data && <Standing of={data} onAct={setDoing} />}
      {doing === 'begin' && (
        <Prove<EnrolmentResponse>
          title={words.turnOn}
          path="/begin"
          onClose={close}
          onDone={(made) => {
            close()
            setBegun(made)
          }}
        />
      )}
      {begun && <Enrol begun={begun} onClose={() => setBegun(undefined)} onDone={showCodes} />}
      {doing === 'renew' && (
        <Prove<RecoveryCodesResponse> title={words.renew} path="/recovery-codes" withCode onClose={close} onDone={showCodes} />
      )}
      {doing === 'remove' && (
        <Prove
          title={words.turnOff}
          path="/remove"
          withCode
          onClose={close}
          onDone={async () => {
            close()
            await refresh()
          }}
        />
      )}
      {codes && <RecoveryCodes codes={codes} onClose={() => setCodes(undefined)} />}
    </>
  )
}

const Standing = ({ of, onAct }: { of: SecondFactorResponse; onAct: (doing: Doing) => void }) => (
  <SettingRow
    title={
      <>
        {words.title} <Badge tone={of.isOn ? 'good' : 'wait'}>{of.isOn ? words.isOn : words.isOff}</Badge>
      </>
    }
    control={
      of.isOn ? (
        <>
          <Button onClick={() => onAct('renew')}>{words.renew}</Button>
          <Button kind="danger" onClick={() => onAct('remove')}>
            {words.turnOff}
          </Button>
        </>
      ) : (
        <Button onClick={() => onAct('begin')}>{words.turnOn}</Button>
      )
    }
  >
    <p>{of.isOn ? words.on : words.off}</p>
    {of.since !== null && (
      <p>
        {words.since} <Time at={of.since} />, {words.left(of.recoveryCodesLeft)}
      </p>
    )}
  </SettingRow>
)

/** Asks for the password again, and for a code if two-factor authentication is on. */
function Prove<Made>(props: { title: string; path: string; withCode?: boolean; onDone: (made: Made) => unknown; onClose: () => void }) {
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  return (
    <FormDialog
      title={props.title}
      action={props.title}
      run={() => post<Made>(`${api}${props.path}`, { password, ...(props.withCode ? { code } : {}) })}
      onDone={props.onDone}
      onClose={props.onClose}
    >
      <PasswordField
        label={words.passwordAgain}
        autoComplete="current-password"
        required
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      {props.withCode && <CodeField code={code} onCode={setCode} help={texts.signIn.codeHelp} />}
    </FormDialog>
  )
}

const CodeField = (props: { code: string; onCode: (code: string) => void; help?: string }) => (
  <Field
    label={texts.signIn.code}
    {...(props.help ? { help: props.help } : {})}
    autoComplete="one-time-code"
    required
    value={props.code}
    onChange={(event) => props.onCode(event.target.value)}
  />
)

function Enrol({
  begun: { secret, uri },
  onDone,
  onClose,
}: {
  begun: EnrolmentResponse
  onDone: (made: RecoveryCodesResponse) => unknown
  onClose: () => void
}) {
  const [code, setCode] = useState('')
  return (
    <FormDialog
      title={words.scanTitle}
      action={words.turnOn}
      run={() => post<RecoveryCodesResponse>(`${api}/confirm`, { code })}
      onDone={onDone}
      onClose={onClose}
    >
      <p className="text-sm">{words.scan}</p>
      <QrCode text={uri} label={words.qr} />
      <div className="flex flex-col gap-1">
        <p className="text-sm font-medium">{words.secret}</p>
        <Code>{secret}</Code>
      </div>
      <CodeField code={code} onCode={setCode} />
    </FormDialog>
  )
}

const quietZone = 4

/** Dark on white in both themes, because scanners expect it. */
function QrCode({ text, label }: { text: string; label: string }) {
  const { data, size } = encode(text, { ecc: 'M', border: quietZone })
  const modules = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])))
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${size} ${size}`}
      shapeRendering="crispEdges"
      className="size-56 max-w-full self-center rounded-md bg-[#fff]"
    >
      <path d={modules.join('')} fill="#000" />
    </svg>
  )
}

function RecoveryCodes({ codes, onClose }: { codes: string[]; onClose: () => void }) {
  const text = codes.join('\n')
  return (
    <Dialog title={words.codesTitle} onClose={onClose}>
      <p className="mb-3 text-sm">{words.codesText}</p>
      <Pre label={words.codesTitle}>{text}</Pre>
      <div className="mt-4 flex flex-wrap justify-end gap-2">
        <Button onClick={() => save('postrider-recovery-codes.txt', new Blob([`${text}\n`], { type: 'text/plain' }))}>
          {texts.actions.download}
        </Button>
        <Copy text={text} label={words.copyCodes} />
        <Button kind="main" onClick={onClose}>
          {texts.actions.done}
        </Button>
      </div>
    </Dialog>
  )
}
