/** Separates the machines of a failover test by iptables rules in a chain of its own. Packets are dropped, not refused: silence is the fault. */
import { execFileSync } from 'node:child_process'
import type { Machine } from './machines.ts'

const chain = 'POSTRIDER_FAILOVER'

const iptables = (...words: string[]) => execFileSync('iptables', ['-w', '5', ...words], { stdio: ['ignore', 'ignore', 'pipe'] })

export interface Firewall {
  /** Drops every packet to and from the machine, also those of established connections. */
  isolate(machine: Machine): void
  /** Drops the packets between the machine and `others`; clients still reach it. */
  separate(machine: Machine, others: readonly Machine[]): void
  /** Lifts all rules. */
  heal(): void
  close(): void
}

export function openFirewall(): Firewall {
  close()
  iptables('-N', chain)
  iptables('-I', 'OUTPUT', '-j', chain)
  const drop = (...match: string[]) => iptables('-A', chain, ...match, '-j', 'DROP')
  const from = ({ uid }: Machine) => ['-m', 'owner', '--uid-owner', String(uid)]
  return {
    isolate(machine) {
      // Its own connections to itself stay: they do not leave a real machine either.
      iptables('-A', chain, ...from(machine), '-d', machine.address, '-j', 'ACCEPT')
      iptables('-A', chain, '-s', machine.address, '-d', machine.address, '-j', 'ACCEPT')
      drop('-d', machine.address)
      drop('-s', machine.address)
      drop(...from(machine))
    },
    separate(machine, others) {
      for (const other of others) {
        drop(...from(machine), '-d', other.address)
        drop(...from(other), '-d', machine.address)
      }
    },
    heal: () => void iptables('-F', chain),
    close,
  }
}

/** Removes the chain of this or of an earlier run. */
function close(): void {
  for (const words of [
    ['-D', 'OUTPUT', '-j', chain],
    ['-F', chain],
    ['-X', chain],
  ]) {
    try {
      iptables(...words)
    } catch {
      // It does not exist.
    }
  }
}
