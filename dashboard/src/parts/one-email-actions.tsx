/** The actions of one email: the sensible one as the main button, the others in a menu. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { post } from '../api-client.ts'
import type { Email } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Confirm } from './action-dialogs.tsx'
import { Button } from './basic-components.tsx'
import { Menu } from './menu.tsx'
import { isScheduled, ScheduledActions } from './scheduled-actions.tsx'
import { toast, toastProblem } from './toast.tsx'

const words = texts.email
const queued: readonly string[] = ['pending', 'softfail', 'held']
/** Failures of the recipient's address, which another attempt cannot correct. */
const hopeless: readonly string[] = ['invalid_recipient', 'no_mailbox', 'not_accepting_mail']

type Action = 'retry' | 'release' | 'suppress' | 'cancel'

interface Choices {
  /** The sensible action. */
  main?: Action
  others: Action[]
}

/** The actions that the status permits. */
function choicesFor(email: Email, isSuppressed: boolean | undefined): Choices {
  const { status, explanation } = email
  const suppress: Action[] = isSuppressed === false ? ['suppress'] : []
  if (status === 'held') return { main: 'release', others: ['retry', ...suppress, 'cancel'] }
  if (status === 'softfail') return { main: 'retry', others: [...suppress, 'cancel'] }
  // A scheduled email has its own button for that.
  if (status === 'pending') return { others: isScheduled(email) ? suppress : [...suppress, 'cancel'] }
  if (status === 'sent') return { others: suppress }
  if (!hopeless.includes(explanation.blockedBy ?? '')) return { main: 'retry', others: suppress }
  return isSuppressed === false ? { main: 'suppress', others: ['retry'] } : { others: ['retry'] }
}

interface OneEmailActionsProps {
  email: Email
  /** Undefined: not loaded. */
  isSuppressed: boolean | undefined
  /** The command that requests the email. */
  curl: string
  refresh: () => Promise<void>
}

const copy = (curl: string) =>
  void navigator.clipboard.writeText(curl).then(
    () => toast(texts.templates.curlCopied),
    () => undefined,
  )

export function OneEmailActions({ email, isSuppressed, curl, refresh }: OneEmailActionsProps) {
  const { mayChange, member } = useHere()
  const client = useQueryClient()
  const [isCancelling, setCancelling] = useState(false)
  const run: Record<Exclude<Action, 'cancel'>, () => Promise<unknown>> = {
    retry: () => post(`/v1/emails/${email.id}/retry`),
    release: () => post(`/dashboard/api/emails/${email.id}/release`),
    suppress: () => post('/v1/suppressions', { address: email.to, reason: words.reason(member.address), tenantId: email.tenantId }),
  }
  const acting = useMutation({
    mutationFn: (action: Exclude<Action, 'cancel'>) => run[action](),
    onSuccess: (_, action) => toast(words.done[action]),
    onError: toastProblem,
    onSettled: () => Promise.all([refresh(), client.invalidateQueries({ queryKey: ['suppressions'] })]),
  })
  const asCurl = { label: words.curl, onChoose: () => copy(curl) }
  if (!mayChange) return <Menu label={words.moreActions} actions={[asCurl]} />
  const choose = (action: Action) => (action === 'cancel' ? setCancelling(true) : acting.mutate(action))
  const { main, others } = choicesFor(email, isSuppressed)
  return (
    <>
      {isScheduled(email) && <ScheduledActions email={email} refresh={refresh} />}
      {main && (
        <Button kind="main" disabled={acting.isPending} onClick={() => choose(main)}>
          {words[main]}
        </Button>
      )}
      <Menu
        label={words.moreActions}
        actions={[
          asCurl,
          ...others.map((action) => ({
            label: words[action],
            isDanger: action === 'cancel',
            disabled: acting.isPending,
            onChoose: () => choose(action),
          })),
        ]}
      />
      {isCancelling && queued.includes(email.status) && (
        <Confirm
          title={words.cancelTitle(email.to)}
          text={words.cancelText}
          action={words.cancel}
          run={() => post(`/dashboard/api/emails/${email.id}/cancel`)}
          onDone={async () => {
            setCancelling(false)
            await refresh()
          }}
          onClose={() => setCancelling(false)}
        />
      )}
    </>
  )
}
