/** POST /api/welcome {"address": "ann@example.org"}: sends a welcome, once for each address in 24 hours. */
import { ApiError, Postrider } from '@postrider/client'

const postrider = new Postrider({ apiKey: process.env.POSTRIDER_KEY ?? '', baseUrl: `${process.env.POSTRIDER_URL}/v1` })

export async function POST(request: Request): Promise<Response> {
  const { address } = (await request.json()) as { address: string }
  const welcome = { from: 'Shop <shop@simulator.test>', to: [address], subject: 'Welcome', html: '<p>Good to have you.</p>' }
  try {
    const { id } = await postrider.emails.send(welcome, { idempotencyKey: `welcome-${Buffer.from(address).toString('base64url')}` })
    return Response.json({ id })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) throw error
    return Response.json({ message: error.message }, { status: 400 })
  }
}
