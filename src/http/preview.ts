/**
 * The HTML of a stranger's email as a page that can do nothing: no scripts, no forms, no requests, no way out of its frame. The policy
 * forbids it; elements that could ask for something before the policy is consulted are made inert besides.
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

/** Preconnects, refreshes and the like; as an unknown element it is text without effect. */
const activeElements = /<(\/?)(?=(?:link|meta|base|script|object|embed|applet|iframe|frame|frameset|portal|form)\b)/gi

/** `html` undefined: the email has none. */
export function previewDocument(html: string | undefined): string {
  const head = '<!doctype html><html lang=""><head><meta charset="utf-8"><title>Preview</title></head><body>'
  if (html === undefined) return `${head}<p>This email has no HTML.</p>`
  return head + html.replace(activeElements, '<$1x-')
}
