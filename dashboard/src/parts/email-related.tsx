/** Context of one email: webhook requests with responses, and the request that sent it. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { post } from '../api-client.ts'
import type { EmailMoreResponse } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, Button } from './basic-components.tsx'
import { Time } from './time-and-copy.tsx'
import { toast, toastProblem } from './toast.tsx'

const words = texts.email

export function WebhookEntry({ of: one, onReplayed }: { of: EmailMoreResponse['webhooks'][number]; onReplayed: () => void }) {
  const { mayChange } = useHere()
  const replay = useMutation({
    mutationFn: () => post(`/v1/webhooks/${one.webhookId}/deliveries/${one.id}/replay`),
    onSuccess: () => toast(texts.webhook.replayed),
    onError: toastProblem,
    onSettled: onReplayed,
  })
  return (
    <p className="flex flex-wrap items-center gap-x-2 gap-y-1">
      <span>
        {words.webhook}{' '}
        <Link to="/webhooks/$webhookId" params={{ webhookId: one.webhookId }} search={{}} className="link">
          {one.webhookName}
        </Link>
      </span>
      <span className="font-mono text-xs">{one.event}</span>
      <Badge tone={one.success ? 'good' : one.willRetry ? 'wait' : 'bad'}>{one.statusCode ?? texts.webhook.noAnswer}</Badge>
      <span className="text-xs text-soft">
        {one.attempt > 1 && `${words.attempt(one.attempt)} · `}
        <Time at={one.timestamp} exact />
      </span>
      {mayChange && (
        <Button small kind="quiet" disabled={replay.isPending} onClick={() => replay.mutate()}>
          {texts.webhook.replay}
        </Button>
      )}
    </p>
  )
}

export const MadeBy = ({ request }: { request: EmailMoreResponse['request'] }) =>
  request ? (
    <>
      <Link to="/logs/$requestId" params={{ requestId: request.requestId }} search={{}} className="link">
        {request.method} {request.path}
      </Link>
      <span className="block text-xs text-soft">
        {[request.credential.keyPrefix, request.context.ipAddress, request.context.userAgent, request.context.idempotencyKey]
          .filter((one) => one)
          .join(' · ')}
      </span>
    </>
  ) : (
    <span className="text-xs text-soft">{words.noRequest}</span>
  )
