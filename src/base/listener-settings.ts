/** Settings of everything that listens: the HTTP server, SMTP, TLS files, and HTTPS with certificates by ACME. */
import { choiceFrom, networksFrom, portFrom, setting } from './setting.ts'

export const listenerSettings = {
  host: setting('HOST', '127.0.0.1', 'address the HTTP server listens on', (v) => v ?? '127.0.0.1'),
  port: setting('PORT', '3025', 'port of the HTTP server: API `/v1`, reference `/docs`, `/healthz`, `/readyz`, `/metrics`', (v) =>
    portFrom(v, 3025),
  ),
  publicUrl: setting('POSTRIDER_PUBLIC_URL', '`http://localhost:` + PORT', 'public base URL of the HTTP server, used in links', (v) => {
    if (v === undefined) return undefined
    const url = v
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw new Error(`"${url}" is not an http or https URL`)
    return url.replace(/\/+$/, '')
  }),
  smtpHost: setting('POSTRIDER_SMTP_HOST', 'HOST', 'address the SMTP listeners listen on', (v) => v),
  smtpPort: setting(
    'POSTRIDER_SMTP_PORT',
    '2525',
    'port for incoming mail: bounces, complaints, reports, and mail for routes (public port 25)',
    (v) => portFrom(v, 2525),
  ),
  submissionPort: setting('POSTRIDER_SUBMISSION_PORT', '2587', 'port for submission with STARTTLS (public port 587)', (v) =>
    portFrom(v, 2587),
  ),
  submissionTlsPort: setting('POSTRIDER_SUBMISSION_TLS_PORT', '2465', 'port for submission with implicit TLS (public port 465)', (v) =>
    portFrom(v, 2465),
  ),
  tlsCert: setting(
    'POSTRIDER_TLS_CERT',
    'self-signed',
    'PEM file with the certificate chain of the SMTP listeners; reloaded when it changes',
    (v) => v,
  ),
  tlsKey: setting('POSTRIDER_TLS_KEY', 'self-signed', 'PEM file with the private key of that certificate', (v) => v),
  https: setting(
    'POSTRIDER_HTTPS',
    'off',
    '`on` opens an HTTPS and an HTTP port and obtains the certificates of all names by ACME (docs/https.md)',
    (v) => choiceFrom(v, ['on', 'off'], 'off') === 'on',
  ),
  httpsHost: setting('POSTRIDER_HTTPS_HOST', 'all addresses', 'address of the HTTPS and HTTP ports', (v) => v),
  httpsPort: setting('POSTRIDER_HTTPS_PORT', '443', 'HTTPS port; requests to the public port 443 must lead to it', (v) => portFrom(v, 443)),
  httpPort: setting(
    'POSTRIDER_HTTP_PORT',
    '80',
    'HTTP port for challenges and redirections; requests to the public port 80 must lead to it',
    (v) => portFrom(v, 80),
  ),
  acmeDirectory: setting(
    'POSTRIDER_ACME_DIRECTORY',
    "Let's Encrypt",
    'directory URL of the certificate authority; with POSTRIDER_HTTPS=on you agree to its terms of service',
    (v) => {
      if (v === undefined) return 'https://acme-v02.api.letsencrypt.org/directory'
      if (!v.startsWith('https://') || !URL.canParse(v)) throw new Error(`"${v}" is not an https URL`)
      return v
    },
  ),
  acmeContact: setting('POSTRIDER_ACME_CONTACT', 'none', 'email address that the certificate authority may write to', (v) => {
    if (v !== undefined && !/^[^\s@,?]+@[^\s@,?]+$/.test(v)) throw new Error(`"${v}" is not an email address`)
    return v
  }),
  mtaSts: setting(
    'POSTRIDER_MTA_STS',
    'off',
    '`testing` or `enforce`: publishes an MTA-STS policy of the return-path name, with POSTRIDER_HTTPS=on (docs/mta-sts.md)',
    (v) => choiceFrom(v, ['off', 'testing', 'enforce'], 'off'),
  ),
  trustedProxies: setting(
    'POSTRIDER_TRUSTED_PROXIES',
    'none',
    'comma-separated networks of proxies whose forwarding headers are trusted',
    networksFrom,
  ),
  metricsToken: setting(
    'POSTRIDER_METRICS_TOKEN',
    'none',
    'bearer token that `/metrics` requires; if unset, `/metrics` accepts only loopback connections without forwarding headers',
    (v) => v,
  ),
} as const
