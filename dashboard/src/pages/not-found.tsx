/** The page for an address without a page: beside the navigation for a person who is signed in, with the mark for others. */
import { Link, useLocation } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Shell } from '../layout.tsx'
import { linkAs, useTitle } from '../parts/basic-components.tsx'
import { Mark } from '../parts/mark.tsx'
import { groupsFor } from '../places.tsx'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

const words = texts.noSuchPage

export function NoSuchPage() {
  useTitle(words.title)
  return (
    <Shell
      stranger={
        <main className="mx-auto flex min-h-dvh max-w-md flex-col justify-center p-8">
          <p className="mb-6 flex items-center gap-2 font-semibold">
            <Mark /> {texts.name}
          </p>
          <Missing />
        </main>
      }
    >
      <div className="mx-auto flex max-w-md flex-col justify-center py-16 lg:min-h-[70dvh]">
        <Missing>
          <NearBy />
        </Missing>
      </div>
    </Shell>
  )
}

/** `children`: other ways out. */
function Missing({ children }: { children?: ReactNode }) {
  const { pathname } = useLocation()
  return (
    <>
      <p className="text-sm font-medium text-soft">404</p>
      <h1 className="mt-1 text-2xl font-semibold tracking-tight">{words.title}</h1>
      <p className="mt-3 font-mono text-xs text-soft [overflow-wrap:anywhere]">{pathname}</p>
      <p className="mt-2 text-sm text-soft">{words.text}</p>
      <p className="mt-5 flex flex-wrap gap-2">
        <Link to="/" search={{}} className={linkAs.main}>
          {words.back}
        </Link>
        {children}
      </p>
    </>
  )
}

/** The list to which the address seems to belong: the page that its first part names. */
function NearBy() {
  const { member } = useHere()
  const { pathname } = useLocation()
  const near = groupsFor(member)
    .flatMap(({ places }) => places)
    .find(({ to }) => to !== '/' && to === `/${pathname.split('/')[1]}`)
  if (!near) return null
  return (
    <Link to={near.to as '/'} search={{}} className={linkAs.plain}>
      {near.icon}
      {words.goTo(near.name)}
    </Link>
  )
}
