/** `react:` in sends: an element of React becomes `html` before the request, with the function of the caller's own React Email. */
import type { RenderReact, SendOptions } from './api.ts'
import type { BatchToSend, EmailToSend, SentBatch, SentEmail } from './generated-types.ts'

/** `react` instead of `html`. A message without a template needs a subject. */
type WithReact<Message> = Message & { react?: unknown } & ({ subject: string } | { templateId: string })

interface Sending {
  send(body: EmailToSend, options?: SendOptions): Promise<SentEmail>
  sendBatch(body: BatchToSend, options?: SendOptions): Promise<SentBatch>
}

async function rendered<Message extends { html?: string | null | undefined }>(
  { react, ...message }: Message & { react?: unknown },
  render: RenderReact | undefined,
): Promise<Message> {
  if (react === undefined || react === null) return message as unknown as Message
  if (!render) throw new TypeError('react needs the setting render: new Postrider({ …, render }) with render of @react-email/render')
  if (message.html != null) throw new TypeError('react and html cannot be given together')
  return { ...message, html: await render(react) } as unknown as Message
}

/** The methods that send, which also take `react`. */
export function withReact<Emails extends Sending>(emails: Emails, render: RenderReact | undefined) {
  return {
    ...(emails as Omit<Emails, 'send' | 'sendBatch'>),
    /** As in the API reference; `react` instead of `html` is an element that the setting `render` renders. */
    send: async (body: WithReact<EmailToSend>, options: SendOptions = {}) => emails.send(await rendered(body, render), options),
    /** As in the API reference; each email may have `react` instead of `html`. */
    sendBatch: async (
      body: Omit<BatchToSend, 'emails'> & { emails: WithReact<BatchToSend['emails'][number]>[] },
      options: SendOptions = {},
    ) => {
      // Callers without types may send another body, which the service refuses with a reason.
      const isList = Array.isArray(body.emails)
      return emails.sendBatch(
        isList ? { ...body, emails: await Promise.all(body.emails.map((one) => rendered(one, render))) } : body,
        options,
      )
    },
  }
}
