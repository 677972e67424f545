/**
 * POST /api/welcome {"address": "ann@example.org"}: sends a welcome, once for each address in 24 hours. Anybody could make it write to any
 * address: check a session or a captcha first.
 */
import { ApiError, Postrider } from '@postrider/client'

const postrider = new Postrider({ apiKey: process.env.POSTRIDER_KEY ?? '', baseUrl: `${process.env.POSTRIDER_URL}/v1` })

/** The idempotency key, which may have 255 characters, contains the address. */
const maxAddress = 180

export async function POST(request: Request): Promise<Response> {
  const { address } = (await request.json()) as { address?: unknown }
  if (typeof address !== 'string' || address.length > maxAddress)
    return Response.json({ message: 'address is missing or too long' }, { status: 400 })
  const welcome = { from: 'Shop <shop@simulator.test>', to: [address], subject: 'Welcome', html: '<p>Good to have you.</p>' }
  try {
    const { id } = await postrider.emails.send(welcome, { idempotencyKey: `welcome-${Buffer.from(address).toString('base64url')}` })
    return Response.json({ id })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return Response.json({ message: error.message }, { status: error.status === 429 ? 429 : 400 })
  }
}
