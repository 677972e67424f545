/** The requests of a signed-in browser: the cookie, the header, and the fields that state a request's origin. */
import { openIds, systemRandom } from '#base'
import { addMember, type Role } from '#members'
import type { Service } from '../support/in-process-service.ts'

export const password = 'correct horse battery'

export interface Reply {
  status: number
  headers: Headers
  text: string
  data: never
  code: string | undefined
}

export const fromOurPages = { 'x-postrider-session': '1', 'sec-fetch-site': 'same-origin' }

let networks = 0
/** A new network each time, so that no sign-in uses up another's attempts. The installation must trust this machine as a proxy. */
export const fromElsewhere = () => ({ 'x-forwarded-for': `198.51.100.${++networks}` })
export const elsewhere = (): Record<string, string> => ({ ...fromOurPages, ...fromElsewhere() })

/** `path` from the root. */
export async function ask(service: Service, method: string, path: string, headers: Record<string, string>, body?: object): Promise<Reply> {
  const answer = await fetch(`http://127.0.0.1:${service.port}${path}`, {
    method,
    headers: { ...(body ? { 'content-type': 'application/json' } : {}), ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
    redirect: 'manual',
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json') === true
  const parsed = isJson ? (JSON.parse(text) as { data?: never; error?: { code: string } }) : {}
  return { status: answer.status, headers: answer.headers, text, data: parsed.data as never, code: parsed.error?.code }
}

export const cookieOf = ({ headers }: Pick<Reply, 'headers'>): string => headers.get('set-cookie')?.split(';')[0] ?? ''

export async function invite(
  service: Service,
  address: string,
  role: Role,
  tenantId: string | null = null,
  nowMs = Date.now(),
): Promise<string> {
  const { signInToken } = await service.db.transaction((tx) =>
    addMember(tx, { address, role, tenantId }, { nowMs, ids: openIds(systemRandom) }),
  )
  return signInToken
}

export const useLink = (service: Service, token: string, chosen = password): Promise<Reply> =>
  ask(service, 'POST', '/dashboard/api/sign-in-link/password', elsewhere(), { token, password: chosen })

/** Signs a member in and returns the headers of their requests. */
export async function signedIn(
  service: Service,
  address: string,
  role: Role,
  tenantId: string | null = null,
): Promise<Record<string, string>> {
  const reply = await useLink(service, await invite(service, address, role, tenantId))
  return { ...fromOurPages, cookie: cookieOf(reply) }
}
