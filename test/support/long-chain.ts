/** A server's certificate under a chain of authorities, as long as a server would send it to occupy its clients. */
import { type Issued, makeAuthority } from './certificate-authority.ts'

/** About 400 octets for each authority. `root` is not in the chain. */
export function makeLongChain(names: readonly string[], authorities = 40): { cert: string; key: string; root: string } {
  const root = makeAuthority()
  const chain: Issued[] = []
  for (let n = 0; n < authorities; n++)
    chain.unshift((chain[0] ?? root).issue({ names: [`Authority ${n} ${'x'.repeat(40)}`], isAuthority: true }))
  const own = (chain[0] ?? root).issue({ names })
  return { cert: [own, ...chain].map((one) => one.cert).join(''), key: own.key, root: root.cert }
}
