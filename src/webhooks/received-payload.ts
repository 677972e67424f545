/** Payload of MessageReceived: the parts of a received message, bounded, with links to the whole one. */
import { type ReceivedMail, shownAuthentication } from '#received-mail'

/** Bounds the memory of events that wait for a slow receiver; the links lead to the rest. */
export const bodiesInEvents = { text: 20_000, html: 40_000 }

/** Everything is empty once the message was deleted. `url`: the public URL of the installation. */
export function receivedPayload(id: string, message: ReceivedMail | undefined, url: string): Record<string, unknown> {
  const facts = message?.facts
  return {
    id,
    recipients: (message?.recipients ?? []).map(({ address, routeId }) => ({ address, route_id: routeId })),
    envelope_from: message?.sender ?? '',
    client_address: message?.client ?? '',
    from: facts?.from ?? '',
    from_name: facts?.fromName ?? '',
    to: facts?.to ?? '',
    cc: facts?.cc ?? '',
    reply_to: facts?.replyTo ?? '',
    subject: facts?.subject ?? '',
    message_id: facts?.messageId ?? '',
    date: facts?.date ?? '',
    text: message?.text ?? null,
    html: message?.html ?? null,
    headers: facts?.headers ?? [],
    attachments: (facts?.attachments ?? []).map(({ filename, contentType, sizeOctets }) => ({
      filename,
      content_type: contentType,
      size: sizeOctets,
    })),
    truncated: (facts?.truncated ?? true) || (message?.isCut ?? false),
    auto_submitted: facts?.autoSubmitted ?? '',
    hops: facts?.hops ?? 0,
    size: message?.sizeOctets ?? 0,
    in_reply_to: message?.replyToEmail ?? null,
    in_reply_to_proven: facts?.isReplyProven ?? false,
    authentication: facts?.authentication ? shownAuthentication(facts.authentication) : null,
    url: `${url}/v1/received/${id}`,
    raw_url: `${url}/v1/received/${id}/raw`,
  }
}
