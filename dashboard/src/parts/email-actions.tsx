/** Actions on the selected emails of a list. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { post } from '../api-client.ts'
import type { ListedEmail } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Button } from './basic-components.tsx'
import { BulkBar, type Selection } from './data-table.tsx'
import { toast } from './toast.tsx'

const words = texts.emails.bulk
const retryable: readonly string[] = ['softfail', 'hardfail', 'bounced']

interface BulkAction {
  name: string
  /** Whether the status of the email allows the action. */
  allows: (email: ListedEmail) => boolean
  run: (email: ListedEmail) => Promise<unknown>
}

export function EmailActions({ selection, emails }: { selection: Selection; emails: readonly ListedEmail[] }) {
  const { mayChange, member } = useHere()
  const client = useQueryClient()
  const chosen = emails.filter(({ id }) => selection.chosen.has(id))
  const acting = useMutation({
    /** One request after the other: a session may make 50 a second, and each email answers for itself. */
    mutationFn: async ({ name, allows, run }: BulkAction) => {
      const allowed = chosen.filter(allows)
      let failed = 0
      for (const email of allowed) await run(email).catch(() => failed++)
      toast(words.done(name, allowed.length - failed, failed, chosen.length - allowed.length))
      selection.onChange(new Set())
    },
    onSettled: () => client.invalidateQueries({ queryKey: ['emails'] }),
  })
  const copyIds = () =>
    void navigator.clipboard.writeText(chosen.map(({ id }) => id).join('\n')).then(
      () => toast(words.copied(chosen.length)),
      () => undefined,
    )
  const button = (action: BulkAction) => (
    <Button small disabled={!chosen.some(action.allows) || acting.isPending} onClick={() => acting.mutate(action)}>
      {action.name}
    </Button>
  )
  const suppress = ({ to, tenantId }: ListedEmail) =>
    post('/v1/suppressions', { address: to, reason: texts.email.reason(member.address), tenantId })
  return (
    <BulkBar selection={selection}>
      {mayChange && (
        <>
          {button({
            name: words.retry,
            allows: ({ status }) => retryable.includes(status),
            run: ({ id }) => post(`/v1/emails/${id}/retry`),
          })}
          {button({
            name: words.release,
            allows: ({ status }) => status === 'held',
            run: ({ id }) => post(`/dashboard/api/emails/${id}/release`),
          })}
          {button({ name: words.suppress, allows: () => true, run: suppress })}
        </>
      )}
      <Button small onClick={copyIds}>
        {words.copyIds}
      </Button>
    </BulkBar>
  )
}
