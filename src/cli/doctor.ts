/** `postrider doctor`: checks whether this installation is fit to send, and recommends repairs. */
import { examine, type Finding, publicAddresses, readPlatform } from '#doctor'
import { openResolver } from '#net'
import { type Command, jsonOption } from './command.ts'

const httpsPort = 443

const line = ({ name, status, found, do: todo }: Finding) =>
  `${status.padEnd(9)}${name}: ${found}${todo === null ? '' : `\n         → ${todo}`}`

export const doctor: Command = {
  name: 'doctor',
  summary: 'is this installation fit to send, and what to do where it is not',
  help: `postrider doctor [--json]

Looks at the resolver, port 25 outwards, the host's name and addresses (PTR, forward-confirmed), the platform's own records, DMARC,
blocklists, our own SMTP listeners, certificates, the clock, the disk and PostgreSQL; changes nothing, and sends nothing but EHLO. Takes half a minute at most.
Each finding is ok, warning, problem or unknown, with what to do. Ends with 1 when there is a problem.
With --json: [{name, status, found, do}].`,
  options: jsonOption,
  run: (given, deps) =>
    deps.withHouse(async (house) => {
      const { config, db, clock } = house
      const resolver = openResolver({ servers: config.resolvers, clock, ids: house.ids })
      const findings = await examine({
        db,
        clock,
        config,
        resolver,
        records: await readPlatform(house, resolver),
        ownAddresses: publicAddresses(),
        httpsPort,
      })
      deps.print(given.options.json === true ? JSON.stringify(findings) : findings.map(line).join('\n'))
      const problems = findings.filter(({ status }) => status === 'problem').length
      if (problems > 0) throw new Error(problems === 1 ? 'there is 1 problem' : `there are ${problems} problems`)
    }),
}
