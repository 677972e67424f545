/** The frame around every page: navigation, tenant selection, and the signed-in person. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, Navigate, Outlet } from '@tanstack/react-router'
import { useState } from 'react'
import { post } from './api-client.ts'
import { Button, Problem } from './parts/basic-components.tsx'
import { HereProvider, useHere, useMember } from './session.tsx'
import { texts } from './texts.ts'
import { readTheme, showTheme, type Theme, themes } from './theme.ts'

const words = texts.shell

export function Shell() {
  const asked = useMember()
  if (asked.isPending) return <p className="p-8 text-soft">{texts.loading}</p>
  if (asked.error) {
    return (
      <main className="mx-auto max-w-md p-8">
        <Problem error={asked.error} />
        {!window.isSecureContext && <p className="mt-4 text-sm">{texts.insecure}</p>}
      </main>
    )
  }
  if (!asked.data.member) return <Navigate to="/sign-in" />
  return (
    <HereProvider member={asked.data.member}>
      <Frame />
    </HereProvider>
  )
}

const places = [
  ['/', texts.pages.overview],
  ['/emails', texts.pages.emails],
  ['/inbox', texts.pages.inbox],
  ['/domains', texts.pages.domains],
  ['/tracking', texts.pages.tracking],
  ['/suppressions', texts.pages.suppressions],
  ['/webhooks', texts.pages.webhooks],
  ['/keys', texts.pages.keys],
  ['/usage', texts.pages.usage],
  ['/logs', texts.pages.logs],
] as const
const ownersPlaces = [
  ['/members', texts.pages.members],
  ['/audit', texts.pages.audit],
] as const

/** For owners of the organisation. */
const operatorPlaces = [
  ['/queue', texts.pages.queue],
  ['/tenants', texts.pages.tenants],
] as const

/** Pages outside this program, loaded from the server. */
const outside = [
  ['/docs/guide', words.guide],
  ['/docs', words.reference],
] as const

/** Less high with a pointer, so that the whole navigation is visible. */
const place = 'rounded-md px-2.5 py-2 text-sm hover:bg-paper lg:py-1.5'
const small = 'min-h-9 rounded-md border border-line bg-paper px-2 text-sm'

function Frame() {
  const [open, setOpen] = useState(false)
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[14rem_1fr]">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:bg-paper focus:p-2">
        {words.toContent}
      </a>
      <header className="border-b border-line bg-sheet p-3 lg:sticky lg:top-0 lg:h-dvh lg:overflow-y-auto lg:border-r lg:border-b-0">
        <div className="flex items-center justify-between">
          <Link to="/" search={{}} className="text-lg font-bold">
            {texts.name}
          </Link>
          <Button className="lg:hidden" aria-expanded={open} aria-controls="places" onClick={() => setOpen(!open)}>
            {words.menu}
          </Button>
        </div>
        <div id="places" className={`${open ? 'block' : 'hidden'} lg:block`}>
          <Places onGo={() => setOpen(false)} />
          <Controls />
        </div>
      </header>
      <main id="content" className="mx-auto w-full max-w-6xl min-w-0 p-4 lg:p-8">
        <Outlet />
      </main>
    </div>
  )
}

/** The pages that the member's role may use. */
function Places({ onGo }: { onGo: () => void }) {
  const { member } = useHere()
  const isOwner = member.role === 'owner'
  const isOperator = isOwner && member.tenantId === null
  const all = [
    ...places,
    ...(isOperator ? operatorPlaces : []),
    ...(isOwner ? ownersPlaces : []),
    ['/settings', texts.pages.settings] as const,
  ]
  return (
    <nav aria-label={words.main} className="mt-4 flex flex-col gap-0.5">
      {all.map(([to, name]) => (
        <Link
          key={to}
          to={to}
          search={{}}
          activeOptions={{ exact: to === '/' }}
          onClick={onGo}
          className={`${place} aria-[current=page]:bg-paper aria-[current=page]:font-semibold`}
        >
          {name}
        </Link>
      ))}
      {outside.map(([href, name]) => (
        <a key={href} href={href} className={place}>
          {name}
        </a>
      ))}
    </nav>
  )
}

/** The tenant, the theme, and the signed-in person. */
function Controls() {
  const { member, tenants, tenantId, choose } = useHere()
  const [theme, setTheme] = useState<Theme>(readTheme)
  const client = useQueryClient()
  const signOut = useMutation({
    mutationFn: () => post('/dashboard/api/sign-out'),
    onSuccess: () => {
      client.clear()
      location.assign('/sign-in')
    },
  })
  return (
    <div className="mt-6 flex flex-col gap-3 text-sm">
      {tenants.length > 1 && (
        <label className="flex flex-col gap-1">
          {words.tenant}
          <select className={small} value={tenantId ?? ''} onChange={(event) => choose(event.target.value)}>
            <option value="">{words.allTenants}</option>
            {tenants.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <label className="flex flex-col gap-1">
        {words.colours}
        <select
          className={small}
          value={theme}
          onChange={(event) => {
            const next = themes.find((one) => one === event.target.value) ?? 'system'
            setTheme(next)
            showTheme(next)
          }}
        >
          {themes.map((one) => (
            <option key={one} value={one}>
              {words.themes[one]}
            </option>
          ))}
        </select>
      </label>
      <p className="text-soft [overflow-wrap:anywhere]">
        {member.address} ({member.role})
      </p>
      <Button onClick={() => signOut.mutate()}>{words.signOut}</Button>
    </div>
  )
}
