/** `postrider doctor`: checks whether this installation is fit to send, and recommends repairs. */
import { type CheckResult, publicAddresses, readPlatform, runChecks } from '#doctor'
import { openResolver } from '#net'
import { plainLines } from './api.ts'
import { type Command, jsonOption } from './command-definition.ts'
import { shade } from './styles.ts'

const httpsPort = 443

const line = ({ check, status, detail, remedy: todo }: CheckResult) =>
  shade(status, 9) + plainLines(`${check}: ${detail}${todo === null ? '' : `\n         → ${todo}`}`)

export const doctor: Command = {
  name: 'doctor',
  summary: 'check the installation and print a remedy for each problem',
  help: `postrider doctor [--json]

Checks the resolver, outbound port 25, the host name and addresses (PTR, forward-confirmed), the platform's records, DMARC, blocklists,
the SMTP listeners, certificates, the clock, the disk and PostgreSQL. Changes nothing and sends only EHLO. Takes up to 30 seconds.
Each check returns ok, warning, problem or unknown, with a remedy. The exit code is 1 if a check returns problem.
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
      if (problems > 0) throw new Error(problems === 1 ? '1 problem found' : `${problems} problems found`)
    }),
}
