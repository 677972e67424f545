/** The frame around every page: navigation, search, tenant selection, keyboard, and the signed-in person. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, Navigate, Outlet, useLocation } from '@tanstack/react-router'
import { lazy, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react'
import { post } from './api-client.ts'
import { Button, IconButton, Problem, Skeleton } from './parts/basic-components.tsx'
import { Select } from './parts/form-controls.tsx'
import { GuideIcon, MenuIcon, ReferenceIcon, SearchIcon, SignOutIcon, ThemeIcon } from './parts/icons.tsx'
import { Mark } from './parts/mark.tsx'
import { Menu } from './parts/menu.tsx'
import { useShortcuts } from './parts/shortcuts.ts'
import { Toasts } from './parts/toast.tsx'
import { Tooltips } from './parts/tooltip.tsx'
import { useFilters } from './parts/url-params.ts'
import { groupsFor } from './places.tsx'
import { HereProvider, useHere, useMember } from './session.tsx'
import { texts } from './texts.ts'
import { readTheme, showTheme } from './theme.ts'
import { type Theme, themes } from './theme-names.ts'

const words = texts.shell
const Palette = lazy(() => import('./parts/command-palette.tsx'))

/** `stranger`: for a person who is not signed in, in place of the way to sign in. */
export function Shell({ stranger, children = <Outlet /> }: { stranger?: ReactNode; children?: ReactNode }) {
  const { data, error, failureReason } = useMember()
  if (data?.member === null) return stranger ?? <Navigate to="/sign-in" />
  // A failed check keeps the page with its half-filled forms.
  if (data) {
    return (
      <HereProvider member={data.member}>
        <Frame>{children}</Frame>
      </HereProvider>
    )
  }
  if (failureReason) {
    return (
      <main className="mx-auto max-w-md p-8">
        <Problem error={failureReason} />
        {!error && <p className="mt-4 text-sm">{texts.problems.retrying}</p>}
        {!window.isSecureContext && <p className="mt-4 text-sm">{texts.insecure}</p>}
      </main>
    )
  }
  return (
    <div className="mx-auto max-w-3xl p-8">
      <Skeleton lines={6} />
    </div>
  )
}

function Frame({ children }: { children: ReactNode }) {
  const [isMenuOpen, setMenuOpen] = useState(false)
  const [palette, setPalette] = useState<'search' | 'help'>()
  const onSearch = useCallback(() => setPalette('search'), [])
  const onHelp = useCallback(() => setPalette('help'), [])
  const closePalette = useCallback(() => setPalette(undefined), [])
  useShortcuts({ onSearch, onHelp })
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[14.5rem_minmax(0,1fr)]">
      <a href="#content" className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:bg-paper focus:p-2">
        {words.toContent}
      </a>
      <header className="sticky top-0 z-20 border-b border-line bg-sheet lg:static lg:border-r lg:border-b-0">
        <div className="lg:sticky lg:top-0 lg:flex lg:h-dvh lg:flex-col">
          <div className="flex items-center gap-2 px-3 py-2.5 lg:pt-4">
            <Link to="/" search={{}} className="mr-auto flex items-center gap-2 rounded text-base font-semibold tracking-tight">
              <Mark />
              {texts.name}
            </Link>
            <IconButton label={words.search} className="lg:hidden" onClick={onSearch}>
              <SearchIcon size={18} />
            </IconButton>
            <Button className="lg:hidden" aria-expanded={isMenuOpen} aria-controls="places" onClick={() => setMenuOpen(!isMenuOpen)}>
              <MenuIcon size={16} />
              {words.menu}
            </Button>
          </div>
          <div
            id="places"
            className={`${isMenuOpen ? 'flex' : 'hidden'} max-h-[calc(100dvh-3.5rem)] flex-col overflow-y-auto px-3 pb-3 lg:flex lg:max-h-none lg:min-h-0 lg:grow lg:overflow-visible`}
          >
            <SearchButton onClick={onSearch} />
            <ChooseTenant />
            <Places onGo={() => setMenuOpen(false)} />
            <Account onHelp={onHelp} />
          </div>
        </div>
      </header>
      <main id="content" className="mx-auto w-full max-w-[76rem] min-w-0 px-4 py-5 lg:px-10 lg:py-8">
        {children}
      </main>
      {palette && (
        <Suspense>
          <Palette isHelp={palette === 'help'} onClose={closePalette} />
        </Suspense>
      )}
      <Toasts />
      <Tooltips />
    </div>
  )
}

const SearchButton = ({ onClick }: { onClick: () => void }) => (
  <button
    type="button"
    onClick={onClick}
    className="mb-2 hidden min-h-8 items-center gap-2 rounded-md border border-line bg-paper px-2.5 text-left text-sm text-soft hover:border-edge lg:flex"
  >
    <SearchIcon size={14} />
    <span className="grow">{words.search}</span>
    <kbd className="kbd">Ctrl K</kbd>
  </button>
)

/** The pages that the member's role may use. On a wide screen they scroll in a box of their own, so that the account stays in sight. */
function Places({ onGo }: { onGo: () => void }) {
  const { member } = useHere()
  const list = useRef<HTMLElement>(null)
  const path = useLocation({ select: ({ pathname }) => pathname })
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page has another link in this list
  useEffect(() => {
    list.current?.querySelector('[aria-current=page]')?.scrollIntoView({ block: 'nearest' })
  }, [path])
  return (
    <nav
      ref={list}
      aria-label={words.main}
      className="mt-3 flex flex-col gap-3 lg:-mx-3 lg:min-h-0 lg:grow lg:overflow-y-auto lg:overscroll-contain lg:px-3 lg:pt-0.5 lg:pb-2"
    >
      {groupsFor(member).map(({ name, places }, index) => (
        <div key={name}>
          {/* The first pages need no heading: they are the mail itself. */}
          <p className={index === 0 ? 'sr-only' : 'mb-0.5 px-2.5 text-xs text-soft'}>{name}</p>
          {places.map(({ to, name: page, icon }) => (
            <Link
              key={to}
              to={to as '/'}
              search={{}}
              activeOptions={{ exact: to === '/', includeSearch: false }}
              onClick={onGo}
              className="flex items-center gap-2.5 rounded-md px-2.5 py-2 text-sm text-ink hover:bg-line/60 aria-[current=page]:bg-paper aria-[current=page]:font-medium aria-[current=page]:shadow-[inset_2px_0_0_var(--color-brand),0_0_0_1px_var(--color-line)] lg:py-[0.1875rem] [&>svg]:text-edge hover:[&>svg]:text-ink aria-[current=page]:[&>svg]:text-ink"
            >
              {icon}
              {page}
            </Link>
          ))}
        </div>
      ))}
    </nav>
  )
}

function ChooseTenant() {
  const { member, tenants, tenantId, choose } = useHere()
  const [filters, change] = useFilters()
  const isOfOne = useLocation({ select: ({ pathname }) => /^\/(templates|mail-in)/.test(pathname) })
  if (member.tenantId !== null || (tenants.length <= 1 && tenantId === undefined)) return null
  // The lists of templates and of received mail are of one tenant.
  const choices = [
    { value: '', label: isOfOne ? words.defaultTenant : words.allTenants },
    ...tenants.map(({ id, name }) => ({ value: id, label: name })),
  ]
  const onChange = (next: string) => {
    choose(next)
    // The number of the page was one of the other tenant's list.
    if (filters.page !== undefined) change({})
  }
  return <Select bare label={words.tenant} value={tenantId ?? ''} choices={choices} onChange={onChange} />
}

/** The person, the theme, the pages outside this program, and the way out. */
function Account({ onHelp }: { onHelp: () => void }) {
  const { member } = useHere()
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
    <div className="mt-4 flex shrink-0 flex-col gap-1 border-t border-line pt-2.5 lg:-mx-3 lg:mt-0 lg:px-3">
      <p className="flex gap-2 text-xs">
        <span className="min-w-0 grow truncate" data-tip={member.address}>
          {member.address}
        </span>
        <span className="text-soft">{texts.members.roleNames[member.role]}</span>
      </p>
      <div className="-ml-1.5 flex items-center gap-1">
        <Outside href="/docs/guide" label={words.guide}>
          <GuideIcon size={16} />
        </Outside>
        <Outside href="/docs" label={words.reference}>
          <ReferenceIcon size={16} />
        </Outside>
        <Menu
          label={words.colours}
          icon={<ThemeIcon size={16} />}
          actions={themes.map((value) => ({
            label: words.themes[value],
            isChosen: value === theme,
            onChoose: () => {
              setTheme(value)
              showTheme(value)
            },
          }))}
        />
        <IconButton label={words.keyboard} className="hidden lg:inline-flex" onClick={onHelp}>
          <kbd className="kbd">?</kbd>
        </IconButton>
        <span className="grow" />
        <IconButton label={words.signOut} onClick={() => signOut.mutate()}>
          <SignOutIcon size={16} />
        </IconButton>
      </div>
    </div>
  )
}

/** A page outside of this program, as an icon. */
const Outside = ({ href, label, children }: { href: string; label: string; children: ReactNode }) => (
  <a
    href={href}
    aria-label={label}
    data-tip={label}
    className="inline-flex size-7 shrink-0 items-center justify-center rounded-md text-soft hover:bg-line/60 hover:text-ink pointer-coarse:size-9"
  >
    {children}
  </a>
)
