/** `postrider doctor`: checks whether this installation is fit to send, and recommends repairs. */
import { type CheckResult, publicAddresses, readPlatform, runChecks } from '#doctor'
import { openResolver } from '#net'
import { type Command, jsonOption } from './command-definition.ts'

const httpsPort = 443

const line = ({ check, status, detail, remedy: todo }: CheckResult) =>
  `${status.padEnd(9)}${check}: ${detail}${todo === null ? '' : `\n         → ${todo}`}`

export const doctor: Command = {
  name: 'doctor',
  summary: 'is this installation fit to send, and what to do where it is not',
  help: `postrider doctor [--json]

Looks at the resolver, port 25 outwards, the host's name and addresses (PTR, forward-confirmed), the platform's own records, DMARC,
blocklists, our own SMTP listeners, certificates, the clock, the disk and PostgreSQL; changes nothing, and sends nothing but EHLO. Takes half a minute at most.
Each finding is ok, warning, problem or unknown, with what to do. Ends with 1 when there is a problem.
With --json: [{check, status, detail, remedy}].`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withInstallation(async (installation) => {
      const { config, db, clock } = installation
      const resolver = openResolver({ servers: config.resolvers, clock, ids: installation.ids })
      const checkResults = await runChecks({
        db,
        clock,
        config,
        resolver,
        records: await readPlatform(installation, resolver),
        ownAddresses: publicAddresses(),
        httpsPort,
      })
      deps.print(given.options.json === true ? JSON.stringify(checkResults) : checkResults.map(line).join('\n'))
      const problems = checkResults.filter(({ status }) => status === 'problem').length
      if (problems > 0) throw new Error(problems === 1 ? 'there is 1 problem' : `there are ${problems} problems`)
    }),
}
