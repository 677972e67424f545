/** The signed-in person's own settings: the password and two-factor authentication, unless the identity provider has them, sessions, and the time zone of all shown times. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import type { AccountResponse, SecondFactorResponse } from '../api-types.ts'
import { FormDialog } from '../parts/action-dialogs.tsx'
import { Button, Rows, Section, SettingRow } from '../parts/basic-components.tsx'
import { Field, PasswordField, Select } from '../parts/form-controls.tsx'
import { Waiting } from '../parts/paged-lists.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { toast } from '../parts/toast.tsx'
import { texts } from '../texts.ts'
import { browserZone, chooseZone, chosenZone, useZone } from '../time-zone.ts'
import { OwnSessions } from './own-sessions.tsx'
import { SecondFactor } from './two-factor.tsx'

const words = texts.account

export const Account = () => (
  <Section title={words.title}>
    <Rows>
      <SignIn />
      <OwnSessions />
      <TimeZone />
    </Rows>
  </Section>
)

function SignIn() {
  const { data, error } = useQuery({ queryKey: ['account'], queryFn: () => get<AccountResponse>('/dashboard/api/account') })
  if (!data)
    return (
      <div className="px-4 py-3">
        <Waiting error={error} />
      </div>
    )
  if (data.signsInWith === 'provider') return <SettingRow title={words.signIn}>{words.byProvider}</SettingRow>
  return (
    <>
      <OwnPassword />
      <SecondFactor />
    </>
  )
}

function OwnPassword() {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <SettingRow title={words.password} control={<Button onClick={() => setOpen(true)}>{words.change}</Button>}>
        {words.passwordText}
      </SettingRow>
      {isOpen && <ChangePassword onClose={() => setOpen(false)} />}
    </>
  )
}

function ChangePassword({ onClose }: { onClose: () => void }) {
  const [given, setGiven] = useState({ currentPassword: '', password: '', code: '' })
  const factor = useQuery({ queryKey: ['second-factor'], queryFn: () => get<SecondFactorResponse>('/dashboard/api/second-factor') })
  const needsCode = factor.data?.isOn === true
  return (
    <FormDialog
      title={words.changeTitle}
      action={words.change}
      run={() => post('/dashboard/api/password', { ...given, code: needsCode ? given.code : undefined })}
      onDone={() => {
        toast(words.changed)
        onClose()
      }}
      onClose={onClose}
    >
      <PasswordField
        label={words.current}
        autoComplete="current-password"
        required
        value={given.currentPassword}
        onChange={({ target }) => setGiven({ ...given, currentPassword: target.value })}
      />
      <PasswordField
        label={words.new}
        help={words.newHelp}
        autoComplete="new-password"
        required
        minLength={10}
        maxLength={256}
        value={given.password}
        onChange={({ target }) => setGiven({ ...given, password: target.value })}
      />
      {needsCode && (
        <Field
          label={texts.signIn.code}
          help={texts.signIn.codeHelp}
          autoComplete="one-time-code"
          required
          value={given.code}
          onChange={({ target }) => setGiven({ ...given, code: target.value })}
        />
      )}
    </FormDialog>
  )
}

const byBrowser = ''
const zones = [...new Set(['UTC', ...Intl.supportedValuesOf('timeZone')])]

function TimeZone() {
  const zone = useZone()
  const [opened] = useState(() => new Date().toISOString())
  return (
    <SettingRow
      title={words.zoneTitle}
      control={
        <div className="w-full md:w-72">
          <Select
            bare
            label={words.zone}
            value={chosenZone() ?? byBrowser}
            choices={[{ value: byBrowser, label: words.byBrowser(browserZone) }, ...zones.map((value) => ({ value, label: value }))]}
            onChange={(value) => chooseZone(value || undefined)}
          />
        </div>
      }
    >
      {words.zoneText} {words.now} <Time key={zone} at={opened} exact />.
    </SettingRow>
  )
}
