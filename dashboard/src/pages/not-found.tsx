/** The page for an address without a page. */
import { Link, useLocation } from '@tanstack/react-router'
import { useTitle } from '../parts/basic-components.tsx'
import { Mark } from '../parts/mark.tsx'
import { texts } from '../texts.ts'

const words = texts.noSuchPage

export function NoSuchPage() {
  const { pathname } = useLocation()
  useTitle(words.title)
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col justify-center gap-3 p-8">
      <p className="flex items-center gap-2 font-semibold">
        <Mark /> Postrider
      </p>
      <p className="mt-4 text-sm font-medium text-soft">404</p>
      <h1 className="text-2xl font-semibold tracking-tight">{words.title}</h1>
      <p className="text-sm text-soft [overflow-wrap:anywhere]">{words.text(pathname)}</p>
      <p>
        <Link to="/" search={{}} className="link text-sm">
          {words.back}
        </Link>
      </p>
    </main>
  )
}
