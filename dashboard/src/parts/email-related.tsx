/** Context of one email: tracking events, webhook requests with responses, and the request that sent it. */
import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { post } from '../api-client.ts'
import type { Email, EmailMoreResponse, TrackingEvent } from '../api-types.ts'
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'
import { Badge, Button, Empty, Problem, Section, Table, Time } from './basic-components.tsx'

const words = texts.email

export function Activity({ of }: { of: Email['activity'] }) {
  const { opens, clicks, counts } = of ?? { opens: [], clicks: [], counts: undefined }
  const complaint = of?.complaint
  const trackingEvents: (TrackingEvent & { url?: string; what: string })[] = [
    ...opens.map((trackingEvent) => ({ ...trackingEvent, what: words.opened })),
    ...clicks.map((trackingEvent) => ({ ...trackingEvent, what: words.clicked })),
  ]
  trackingEvents.sort((a, b) => a.timestampIso.localeCompare(b.timestampIso))
  return (
    <Section title={words.trackingEvents}>
      {complaint && (
        <p className="mb-2 text-sm">
          <Badge tone="bad">{words.complaint}</Badge> <Time at={complaint.timestampIso} />
        </p>
      )}
      {trackingEvents.length === 0 && <Empty>{words.noHits}</Empty>}
      {trackingEvents.length > 0 && counts && <p className="mb-2 text-sm text-soft">{words.hitCounts(counts.opens, counts.clicks)}</p>}
      <ul className="flex flex-col gap-3 text-sm">
        {trackingEvents.map((trackingEvent, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: tracking events have no id and are only appended
          <li key={index}>
            <p className="flex flex-wrap items-center gap-2">
              <span className="font-medium">{trackingEvent.what}</span>
              <Badge tone={trackingEvent.source === 'human' ? 'good' : 'none'} title={trackingEvent.reason}>
                {trackingEvent.source}
              </Badge>
              <span className="text-soft">
                <Time at={trackingEvent.timestampIso} /> {trackingEvent.ipAddress}
              </span>
            </p>
            {trackingEvent.url && <p className="[overflow-wrap:anywhere]">{trackingEvent.url}</p>}
            <p className="text-soft [overflow-wrap:anywhere]">{trackingEvent.userAgent}</p>
          </li>
        ))}
      </ul>
    </Section>
  )
}

export function WebhooksTold({ told, onReplayed }: { told: EmailMoreResponse['webhooks']; onReplayed: () => void }) {
  const { mayChange } = useHere()
  const replay = useMutation({
    mutationFn: ({ webhookId, id }: { webhookId: string; id: string }) => post(`/v1/webhooks/${webhookId}/deliveries/${id}/replay`),
    onSettled: onReplayed,
  })
  return (
    <Section title={words.webhooks}>
      <Problem error={replay.error} />
      {told.length === 0 && <Empty>{words.noWebhooks}</Empty>}
      {told.length > 0 && (
        <Table label={words.webhooks} columns={words.webhookColumns}>
          {told.map((one) => (
            <tr key={one.id}>
              <td>
                <Time at={one.timestamp} />
              </td>
              <td className="min-w-32 [overflow-wrap:anywhere]">
                <Link to="/webhooks/$webhookId" params={{ webhookId: one.webhookId }} search={{}} className="text-accent underline">
                  {one.webhookName}
                </Link>
              </td>
              <td>{one.event}</td>
              <td>{one.attempt}</td>
              <td>
                <Badge tone={one.success ? 'good' : one.willRetry ? 'wait' : 'bad'}>{one.statusCode ?? texts.webhook.noAnswer}</Badge>
              </td>
              <td className="text-right">
                {mayChange && (
                  <Button disabled={replay.isPending} onClick={() => replay.mutate(one)}>
                    {texts.webhook.replay}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  )
}

export const MadeBy = ({ request }: { request: EmailMoreResponse['request'] }) => (
  <Section title={words.request}>
    {!request && <Empty>{words.noRequest}</Empty>}
    {request && (
      <p className="text-sm [overflow-wrap:anywhere]">
        <Link to="/logs/$requestId" params={{ requestId: request.requestId }} search={{}} className="text-accent underline">
          {request.method} {request.path}
        </Link>{' '}
        <span className="text-soft">
          {[request.credential.keyPrefix, request.context.ipAddress, request.context.userAgent, request.context.idempotencyKey]
            .filter((one) => one)
            .join(' · ')}
        </span>
      </p>
    )}
  </Section>
)
