/**
 * The position where the next claim continues, for a tenant with more recipient domains than one claim examines. Domains that can take no
 * more mail therefore do not block those that can.
 */
import type { Lane } from '#spool'

export interface Cursors {
  /** By tenant: the claim examines only recipient domains after this one. */
  readonly current: ReadonlyMap<string, string>
  /** After a claim: `claimed` are the lanes it returned, `known` are all lanes with mail in flight. */
  advance(claimed: readonly Lane[], known: readonly Lane[]): void
}

/** `looksAt`: the number of a tenant's recipient domains that one claim examines. */
export function openCursors(looksAt: number): Cursors {
  const current = new Map<string, string>()
  /** With fewer active lanes than this, a claim sees beyond all of them. */
  const many = Math.floor(looksAt * 0.75)
  return {
    current,
    advance(claimed, known) {
      const byTenant = new Map<string, string[]>()
      for (const { tenantId, recipientDomain } of known) {
        const mine = byTenant.get(tenantId)
        if (mine) mine.push(recipientDomain)
        else byTenant.set(tenantId, [recipientDomain])
      }
      for (const tenantId of current.keys()) if ((byTenant.get(tenantId)?.length ?? 0) < many) current.delete(tenantId)
      for (const [tenantId, recipientDomains] of byTenant) {
        if (recipientDomains.length < many) continue
        const given = claimed.filter((lane) => lane.tenantId === tenantId).map((lane) => lane.recipientDomain)
        const from = current.get(tenantId) ?? ''
        const passed = recipientDomains.filter((recipientDomain) => recipientDomain > from).sort()
        const next = given.length > 0 ? given.sort().at(-1) : passed[many - 1]
        if (next === undefined) current.delete(tenantId)
        else current.set(tenantId, next)
      }
    },
  }
}
