/** Why a port could not be opened, for whoever can set another. */
import { ConfigError } from './config.ts'

/** A ConfigError that names `setting` when the port is taken or not ours to open; any other error as it is. */
export function portTaken(error: unknown, setting: string, { host, port }: { host: string; port: number }): unknown {
  const { code } = error as { code?: unknown }
  if (code === 'EADDRINUSE')
    return new ConfigError(`${setting}: ${host}:${port} is in use by another program; end that, or set ${setting} to another port`)
  if (code === 'EACCES')
    return new ConfigError(
      `${setting}: this account may not open ${host}:${port}; set ${setting} to a port above 1023, or let it (docs/install.md)`,
    )
  return error
}
