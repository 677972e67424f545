/** `postrider erase`: removes a person's data and keeps the suppression. */
import { eraseAddress } from '#housekeeping'
import { parseAddress } from '#mail'
import { type Command, givenTenant, jsonOption, printed, UsageError } from './command-definition.ts'

export const erase: Command = {
  name: 'erase',
  audited: 'unnamed',
  summary: "remove a person's data; only their suppression stays",
  help: `postrider erase ADDRESS [--tenant ID] [--json]

Cancels what is queued for the address and removes what was sent to it: content, subject, tag, metadata, conversations, who
opened and clicked, webhook deliveries, request logs and kept answers that name it. Numbers stay, and so does a suppression, so that nobody writes to it again.
Messages that other recipients still wait for are kept and counted; run it again when they have been delivered.
With --tenant only in this tenant.`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = parseAddress(given.positionals[0] as string)
    if (!address) throw new UsageError(`"${given.positionals[0]}" is not an email address`)
    await deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const told = (emails: number) => given.options.json !== true && deps.print(`${emails} emails erased so far`)
      const erased = await eraseAddress(installation, address.text, tenantId, installation.clock.nowMs(), told)
      const kept = erased.kept === 0 ? '' : `\n${erased.kept} messages are kept for other recipients who still wait: run this again later`
      printed(
        given,
        deps,
        { address: address.text, tenantId, ...erased },
        `${erased.emails} emails and ${erased.contents} messages erased${kept}`,
      )
    })
  },
}
