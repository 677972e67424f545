/** The audit entry of a command that changes the installation. */

import type { Installation } from '#installation'
import { recordAction } from '#members'
import { openWaker } from '#spool'
import type { Command, CommandArguments, CommandDeps } from './command-definition.ts'

/** Wraps the database access so that the command's audit entry is written at the end. */
export function recording({ name, audited }: Command, { options, positionals }: CommandArguments, deps: CommandDeps): CommandDeps {
  const { SUDO_USER, USER, LOGNAME } = deps.environment
  const { json: _, ...namedOptions } = options
  const entry = {
    actor: { kind: 'command' as const, name: SUDO_USER || USER || LOGNAME || 'unknown' },
    action: name.replaceAll(' ', '.'),
    tenantId: typeof options.tenant === 'string' && options.tenant !== 'organisation' ? options.tenant : null,
    requestId: null,
    ipAddress: null,
    data: audited === 'unnamed' ? {} : { words: positionals, ...namedOptions },
  }
  const recorded = async <H extends Pick<Installation, 'db' | 'clock'>, T>(installation: H, work: (installation: H) => Promise<T>) => {
    const done = await work(installation)
    await recordAction(installation.db, entry, installation.clock.nowMs())
    openWaker(installation)()
    return done
  }
  return {
    ...deps,
    withInstallation: (work, how) => deps.withInstallation((installation) => recorded(installation, work), how),
    withRawDatabase: (work) => deps.withRawDatabase((installation) => recorded(installation, work)),
  }
}
