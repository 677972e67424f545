/** The webhook's endpoint: https://…/api/webhooks. */
import { verifyWebhook, WebhookVerificationError } from '@postrider/client'

export async function POST(request: Request): Promise<Response> {
  try {
    const event = await verifyWebhook(await request.text(), request.headers, process.env.WEBHOOK_SECRET ?? '')
    if (event.event === 'MessageBounced') console.log(`${event.payload.original_message.to} bounced`)
    return new Response(null, { status: 204 })
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error
    return new Response(null, { status: 400 })
  }
}
