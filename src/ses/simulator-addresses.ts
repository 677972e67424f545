/** The addresses of SES's mailbox simulator, and those of Postrider's simulator with the same outcome. */
import { parseMailbox } from '#mail'
import { SesRefusal } from './errors.ts'

const simulator = 'simulator.amazonses.com'

const outcomes: ReadonlyMap<string, string> = new Map(
  Object.entries({
    success: 'delivered',
    bounce: 'hardfail',
    complaint: 'complaint',
    suppressionlist: 'suppressed',
    // The out-of-office note changes no status.
    ooto: 'delivered',
  }),
)

/** Other recipients stay as they are. Only test keys may write to SES's test addresses: with a live key the mail would leave. */
export function simulated(recipient: string, mode: 'live' | 'test'): string {
  const address = parseMailbox(recipient)?.address
  if (address?.domain.toLowerCase() !== simulator) return recipient
  if (mode !== 'test')
    throw new SesRefusal('messageRejected', `an address at ${simulator} needs a test key: postrider key create --type test --format ses`)
  const [name = '', label] = address.text.slice(0, -simulator.length - 1).split('+', 2)
  const outcome = outcomes.get(name.toLowerCase())
  if (outcome === undefined) throw new SesRefusal('messageRejected', `unknown address of the simulator: ${address.text.slice(0, 100)}`)
  return `${outcome}${label === undefined ? '' : `+${label}`}@simulator.test`
}
