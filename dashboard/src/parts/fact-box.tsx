/** The facts of a request or a webhook in one box: names above values. Absent ones are left out. */
import type { ReactNode } from 'react'

export const FactBox = ({ facts }: { facts: readonly (readonly [name: string, value: ReactNode])[] }) => (
  <dl className="grid grid-cols-2 gap-x-6 gap-y-3 rounded-lg border border-line px-4 py-3 text-sm md:grid-cols-4">
    {facts.map(([name, value]) =>
      value ? (
        <div key={name} className="min-w-0">
          <dt className="text-xs text-soft">{name}</dt>
          <dd className="[overflow-wrap:anywhere] [&_button]:-my-1.5">{value}</dd>
        </div>
      ) : null,
    )}
  </dl>
)
