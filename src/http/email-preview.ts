/**
 * Renders an untrusted email's HTML as an inert page: no scripts, forms or requests, and no navigation out of its frame. A content security
 * policy enforces this. Elements that could send a request before the policy applies are also neutralised.
 */
const policy =
  "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

export const previewHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-dns-prefetch-control': 'off',
  'cross-origin-resource-policy': 'same-origin',
} as const

/** Preconnects, refreshes and similar; renamed to an unknown element they have no effect. */
const activeElements = /<(\/?)(?=(?:link|meta|base|script|object|embed|applet|iframe|frame|frameset|portal|form)\b)/gi

const head = '<!doctype html><html lang=""><head><meta charset="utf-8"><title>Preview</title></head><body>'

/** An email without HTML is shown as its text. */
export function previewDocument({ htmlBody, plainBody = '' }: { htmlBody?: string; plainBody?: string }): string {
  if (htmlBody !== undefined) return head + htmlBody.replace(activeElements, '<$1x-')
  return `${head}<pre style="white-space:pre-wrap;overflow-wrap:anywhere">${plainBody.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`
}
