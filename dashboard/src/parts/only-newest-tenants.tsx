/** The sentence below a menu of tenants that does not have all of them. */
import { useHere } from '../session.tsx'
import { texts } from '../texts.ts'

/** As many as the session reads. */
const mostListed = 100

export function OnlyNewestTenants() {
  const { tenants } = useHere()
  return tenants.length >= mostListed && <p className="text-xs text-soft">{texts.tenants.onlyNewest}</p>
}
