/**
 * The two pages of an unsubscribe link. They load no resources and name no person, because anyone who was forwarded the mail can open them.
 */

/** Only this page's own form may be sent, and the page cannot be framed, which prevents clickjacking. */
export const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-robots-tag': 'noindex',
} as const

const page = (title: string, content: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1.5rem; color: #222; background: #fff }
button { font: inherit; padding: .6rem 1.4rem; border: 0; border-radius: .4rem; background: #222; color: #fff; cursor: pointer }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #1a1a1a } button { background: #eee; color: #1a1a1a } }
</style>
</head>
<body>
<main>
<h1>${title}</h1>
${content}
</main>
</body>
</html>
`

export const askPage = page(
  'Unsubscribe',
  `<p>Select the button to stop all mail from this sender to your address.</p>
<form method="post"><input type="hidden" name="List-Unsubscribe" value="One-Click"><button type="submit">Unsubscribe</button></form>`,
)

export const donePage = page('You are unsubscribed', '<p>You will not receive further mail from this sender.</p>')
