/** The initials of a member, whether a member has signed in, and the rights of each role. */
import type { ShownListedMember } from '../api-types.ts'
import { texts } from '../texts.ts'

const words = texts.members

/** The rights of each role. */
export const Roles = () => (
  <dl className="mt-3 grid gap-x-3 gap-y-0.5 text-xs text-soft md:grid-cols-[auto_1fr]">
    {(['owner', 'admin', 'viewer'] as const).map((role) => (
      <div key={role} className="contents">
        <dt className="font-medium text-ink max-md:mt-1.5">{words.roleNames[role]}</dt>
        <dd>{words.roles[role]}</dd>
      </div>
    ))}
  </dl>
)

/** "MK" for `mia.keller@…`, otherwise the first two letters. */
function initialsOf(address: string): string {
  const name = address.split('@')[0] ?? ''
  const [first = '', second = ''] = name.split(/[^\p{L}\p{N}]+/u).filter((part) => part !== '')
  return (second === '' ? first.slice(0, 2) : first.slice(0, 1) + second.slice(0, 1)).toUpperCase()
}

/** Whether the member has signed in, and needs no link to sign in again. */
export const isActive = ({ signsInWith, hasPassword, hasAccount }: ShownListedMember): boolean =>
  signsInWith === 'provider' ? hasAccount : hasPassword

/** An outline for those who have not signed in. */
export const Initials = ({ of: one }: { of: ShownListedMember }) => (
  <span
    aria-hidden="true"
    className={`inline-flex size-7 shrink-0 items-center justify-center rounded-full text-xs font-medium text-soft ${isActive(one) ? 'bg-line' : 'border border-dashed border-edge'}`}
  >
    {initialsOf(one.address)}
  </span>
)
