/** Splits a DATABASE_URL with several hosts, as libpq accepts it, into one URL for each host, because the driver takes one. */

export interface Host {
  /** For logs; without user and password. */
  name: string
  url: string
}

/**
 * `postgres://user:password@h1:5432,h2:5432/name?options` → one URL for each host, in order. A unix socket is `?host=/folder` with no host
 * before the path. Error messages do not repeat the URL, because it holds the password.
 */
export function hostsOf(url: string): Host[] {
  const parts = /^(postgres(?:ql)?:\/\/)((?:[^/?]*@)?)([^/?@]*)(.*)$/s.exec(url)
  if (!parts) throw new Error('DATABASE_URL must start with postgres:// or postgresql://')
  const [, scheme, login, hosts, rest] = parts as unknown as [string, string, string, string, string]
  return hosts.split(',').map((host) => {
    const single = `${scheme}${login}${host}${rest}`
    // The driver accepts an empty host; the URL parser does so only without a login.
    if (!URL.canParse(host === '' ? `${scheme}socket${rest}` : single)) throw new Error(`DATABASE_URL: "${host}" is not a host`)
    if (host === '' && hosts !== '') throw new Error('DATABASE_URL contains an empty host')
    return { name: host === '' ? 'the unix socket' : host, url: single }
  })
}
