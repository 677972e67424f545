/** Columns of the list of members: whether a member has signed in, the second factor, and the last visit. */
import type { ShownListedMember } from '../api-types.ts'
import { texts } from '../texts.ts'
import { Badge } from './basic-components.tsx'
import { isActive } from './member-identity.tsx'
import { QuietState } from './quiet-state.tsx'
import { Time } from './time-and-copy.tsx'

const { members: words } = texts

/** A member who is not active has not used the sign-in link yet, which works until it ends. */
export function Status({ of: one }: { of: ShownListedMember }) {
  if (isActive(one)) return <QuietState>{words.active}</QuietState>
  if (one.signsInWith === 'provider')
    return (
      <Badge tone="wait" title={words.expectedMeans}>
        {words.expected}
      </Badge>
    )
  const { invitedUntil } = one
  const isOver = invitedUntil === null || Date.parse(invitedUntil) <= Date.now()
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2">
      <Badge tone={isOver ? 'bad' : 'wait'} title={words.invitedMeans}>
        {isOver ? words.expired : words.invited}
      </Badge>
      {invitedUntil && !isOver && (
        <span className="text-xs text-soft">
          {words.ends} <Time at={invitedUntil} />
        </span>
      )}
    </span>
  )
}

export function Factor({ of: one }: { of: ShownListedMember }) {
  if (one.signsInWith === 'provider') return <span className="text-soft">{words.byProvider}</span>
  if (!isActive(one)) return <span className="text-soft">–</span>
  return one.hasSecondFactor ? (
    <QuietState>{words.isOn}</QuietState>
  ) : (
    <span className="text-wait">
      <span className="max-md:hidden">{words.isOff}</span>
      <span className="md:hidden">{words.withoutFactor}</span>
    </span>
  )
}

export function LastSeen({ of: one }: { of: ShownListedMember }) {
  if (one.lastSeenAt)
    return (
      <>
        <span className="text-soft md:hidden">{words.activeShort} </span>
        <Time at={one.lastSeenAt} />
      </>
    )
  return <span className="text-soft">{isActive(one) ? words.signedOut : '–'}</span>
}
