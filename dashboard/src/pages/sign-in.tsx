/**
 * Sign-in by password, or by one-time link, which sets the password; with a code if the member has a second factor. With a button for the
 * identity provider, if one is configured.
 */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { ApiError, get, post } from '../api-client.ts'
import type { OpenIdBeginResponse, OpenIdResponse, SessionResponse, SignInLinkResponse } from '../api-types.ts'
import { Button, Coded, Problem, useTitle, Warning } from '../parts/basic-components.tsx'
import { Field, PasswordField, Select } from '../parts/form-controls.tsx'
import { Mark } from '../parts/mark.tsx'
import { texts } from '../texts.ts'

const { signIn: words } = texts

/** The organisation; no tenant has this id. */
const organisation = 'organisation'

export function SignInPage({ token }: { token?: string }) {
  const link = useQuery({
    queryKey: ['link', token],
    queryFn: () => post<SignInLinkResponse>('/dashboard/api/sign-in-link', { token }),
    enabled: token !== undefined,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  })
  useTitle(token === undefined ? words.title : words.choose)
  return (
    <main className="flex min-h-dvh flex-col items-center justify-center gap-5 bg-sheet p-4">
      <h1 className="flex items-center gap-2.5 text-2xl font-semibold tracking-tight">
        <Mark />
        {texts.name}
      </h1>
      <div className="flex w-full max-w-sm flex-col gap-4 rounded-xl border border-line bg-paper p-6">
        {!window.isSecureContext && <Warning>{texts.insecure}</Warning>}
        {link.error ? (
          <>
            <h2 className="text-lg font-semibold">{words.wrongLink}</h2>
            <Problem error={link.error} />
            <a href="/sign-in" className="link">
              {words.title}
            </a>
          </>
        ) : (
          <SignInForm token={token} link={link.data} />
        )}
        {token === undefined && <ProviderButton />}
      </div>
    </main>
  )
}

function SignInForm({ token, link }: { token: string | undefined; link: SignInLinkResponse | undefined }) {
  const [address, setAddress] = useState('')
  const [password, setPassword] = useState('')
  const [code, setCode] = useState('')
  const { signIn, choices, setChoices, tenant, setTenant } = useSignIn(token, address)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    const chosen = choices.length === 0 ? {} : { tenantId: tenant === organisation ? null : tenant }
    signIn.mutate({ password, ...chosen, ...(code === '' ? {} : { code }) })
  }
  const isLink = token !== undefined
  const isCodeMissing = signIn.error instanceof ApiError && signIn.error.field === 'code'
  const [asksCode, setAsksCode] = useState(false)
  if (isCodeMissing && !asksCode) setAsksCode(true)
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <h2 className="text-lg font-semibold">{isLink ? words.choose : words.title}</h2>
      {isLink && <p className="text-sm text-soft">{words.chooseHelp}</p>}
      <Field
        label={words.address}
        type="email"
        name="username"
        autoComplete="username"
        required
        readOnly={isLink}
        value={isLink ? (link?.address ?? '') : address}
        onChange={(event) => {
          setAddress(event.target.value)
          setChoices([])
        }}
      />
      <PasswordField
        label={words.password}
        name="password"
        autoComplete={isLink ? 'new-password' : 'current-password'}
        required
        minLength={isLink ? 10 : undefined}
        value={password}
        onChange={(event) => {
          setPassword(event.target.value)
          setChoices([])
        }}
      />
      {choices.length > 0 && <TenantSelect choices={choices} tenant={tenant} onChange={setTenant} />}
      {(asksCode || link?.needsCode) && <CodeField isNew={asksCode} code={code} onCode={setCode} />}
      {!(isCodeMissing && signIn.variables?.code === undefined) && <Problem error={signIn.error} />}
      <Button kind="main" type="submit" disabled={signIn.isPending}>
        {isLink ? words.setPassword : words.title}
      </Button>
      {!isLink && (
        <details className="text-sm text-soft">
          <summary className="w-fit">{words.forgottenTitle}</summary>
          <p className="mt-1">
            <Coded>{words.forgotten}</Coded>
          </p>
        </details>
      )}
    </form>
  )
}

function ProviderButton() {
  const provider = useQuery({ queryKey: ['openid'], queryFn: () => get<OpenIdResponse>('/dashboard/api/openid') })
  const begin = useMutation({
    mutationFn: () => post<OpenIdBeginResponse>('/dashboard/api/openid/begin'),
    onSuccess: ({ url }) => window.location.assign(url),
  })
  if (!provider.data?.name) return null
  return (
    <>
      <Button disabled={begin.isPending || begin.isSuccess} onClick={() => begin.mutate()}>
        {words.withProvider(provider.data.name)}
      </Button>
      <Problem error={begin.error} />
    </>
  )
}

/** The request. If several members have the address and password, it returns them as `choices`, the first one chosen. */
function useSignIn(token: string | undefined, address: string) {
  const [choices, setChoices] = useState<NonNullable<SessionResponse['choices']>>([])
  const [tenant, setTenant] = useState('')
  const navigate = useNavigate()
  const client = useQueryClient()
  const signIn = useMutation({
    mutationFn: (proof: { password: string; code?: string; tenantId?: string | null }) =>
      token === undefined
        ? post<SessionResponse>('/dashboard/api/sign-in', { address, ...proof })
        : post<SessionResponse>('/dashboard/api/sign-in-link/password', { token, ...proof }),
    onSuccess: async ({ choices: several = [] }) => {
      if (several.length > 0) {
        setChoices(several)
        setTenant(several[0]?.tenantId ?? organisation)
        return
      }
      client.removeQueries({ queryKey: ['session'] })
      // The token is used up and must not stay in the history.
      await navigate({ to: '/', search: {}, replace: true })
    },
  })
  return { signIn, choices, setChoices, tenant, setTenant }
}

const TenantSelect = (props: { choices: NonNullable<SessionResponse['choices']>; tenant: string; onChange: (tenant: string) => void }) => (
  <Select
    label={words.several}
    value={props.tenant}
    onChange={props.onChange}
    choices={props.choices.map(({ tenantId, name }) => ({
      value: tenantId ?? organisation,
      label: tenantId === null ? texts.members.organisation : (name ?? tenantId),
    }))}
  />
)

const CodeField = ({ isNew, code, onCode }: { isNew: boolean; code: string; onCode: (code: string) => void }) => (
  <Field
    // The focus moves to the field that was just added.
    autoFocus={isNew}
    label={words.code}
    help={words.codeHelp}
    name="code"
    autoComplete="one-time-code"
    required
    value={code}
    onChange={(event) => onCode(event.target.value)}
  />
)
