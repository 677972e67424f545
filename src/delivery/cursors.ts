/**
 * Where the next claim goes on in a tenant that has more destinations than one claim looks at, so that destinations which can take no
 * more do not stand before those that could.
 */
import type { Lane } from '#spool'

export interface Cursors {
  /** By tenant: only destinations after this one are looked at. */
  readonly current: ReadonlyMap<string, string>
  /** After a claim: `claimed` is what it gave, `known` all lanes that the process works on. */
  advance(claimed: readonly Lane[], known: readonly Lane[]): void
}

/** `looksAt`: how many destinations of a tenant one claim looks at. */
export function openCursors(looksAt: number): Cursors {
  const current = new Map<string, string>()
  /** With fewer lanes at work than this, a claim sees past all of them. */
  const many = Math.floor(looksAt * 0.75)
  return {
    current,
    advance(claimed, known) {
      const byTenant = new Map<string, string[]>()
      for (const { tenantId, destination } of known) {
        const mine = byTenant.get(tenantId)
        if (mine) mine.push(destination)
        else byTenant.set(tenantId, [destination])
      }
      for (const tenantId of current.keys()) if ((byTenant.get(tenantId)?.length ?? 0) < many) current.delete(tenantId)
      for (const [tenantId, destinations] of byTenant) {
        if (destinations.length < many) continue
        const given = claimed.filter((lane) => lane.tenantId === tenantId).map((lane) => lane.destination)
        const from = current.get(tenantId) ?? ''
        const passed = destinations.filter((destination) => destination > from).sort()
        const next = given.length > 0 ? given.sort().at(-1) : passed[many - 1]
        if (next === undefined) current.delete(tenantId)
        else current.set(tenantId, next)
      }
    },
  }
}
