/** `postrider erase`: removes a person's data and keeps the suppression. */
import { eraseAddress } from '#housekeeping'
import { parseAddress } from '#mail'
import { listRoutesForwardingTo, routeAddress } from '#received-mail'
import { givenTenant } from './command-arguments.ts'
import { type Command, jsonOption, printed, UsageError } from './command-definition.ts'
import { openProgress } from './progress.ts'

export const erase: Command = {
  name: 'erase',
  audited: 'unnamed',
  summary: "erase a person's data; only their suppression remains",
  help: `postrider erase ADDRESS [--tenant ID] [--json]

Cancels queued mail for the address and erases the mail sent to it: content, subject, tag, metadata, transcripts, opens and clicks,
webhook deliveries, request logs, and stored responses that name it. Counts remain, and so does a suppression that prevents new mail to
the address. Messages still queued for other recipients, and those being sent now, are kept and counted: run the command again after their
delivery, or a few minutes later if no other recipient waits.
Routes that forward to the address stay, and are listed.
--tenant  erases only in this tenant`,
  options: { tenant: { type: 'string' }, ...jsonOption },
  positionals: ['ADDRESS'],
  async run(given, deps) {
    const address = parseAddress(given.positionals[0] as string)
    if (!address) throw new UsageError(`"${given.positionals[0]}" is not an email address`)
    await deps.withInstallation(async (installation) => {
      const tenantId = (await givenTenant(given, installation)) ?? null
      const progress = openProgress(deps.clock)
      const show = (emails: number) => progress.show(`${emails} emails erased so far`)
      const erased = await eraseAddress(installation, address.text, tenantId, installation.clock.nowMs(), show).finally(() =>
        progress.end(),
      )
      const kept =
        erased.kept === 0
          ? ''
          : `\n${erased.kept} messages kept: being sent now, or still queued for other recipients. Run this command again later`
      const found = await listRoutesForwardingTo(installation.db, address.text.toLowerCase(), tenantId)
      const routes = found.map((route) => ({ tenantId: route.tenantId, id: route.id, address: routeAddress(route) }))
      const forwarding = routes.map(
        (route) =>
          `\nThe route ${route.address} of the tenant ${route.tenantId} still forwards to the address. To end it: postrider route update ${route.id} --no-forward --tenant ${route.tenantId}`,
      )
      printed(
        given,
        deps,
        { address: address.text, tenantId, ...erased, routes },
        `${erased.emails} emails and ${erased.contents} messages erased${kept}${forwarding.join('')}`,
      )
    })
  },
}
