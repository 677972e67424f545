/** Explains to the operator why a port could not be opened. */
import { ConfigError } from './setting.ts'

/** A ConfigError that names `setting` if the port is in use or not permitted; any other error unchanged. */
export function portTaken(error: unknown, setting: string, { host, port }: { host: string; port: number }): unknown {
  const { code } = error as { code?: unknown }
  if (code === 'EADDRINUSE')
    return new ConfigError(`${setting}: ${host}:${port} is in use by another program. Stop it or set ${setting} to another port`)
  if (code === 'EACCES')
    return new ConfigError(
      `${setting}: this user may not listen on ${host}:${port}. Set ${setting} to a port above 1023, or grant the permission (docs/install.md)`,
    )
  return error
}
