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

const head = '<!doctype html><html lang=""><head><meta charset="utf-8"><title>Preview</title></head><body>'

/** An email without HTML is shown as its text. */
export function previewDocument({ htmlBody, plainBody = '' }: { htmlBody?: string; plainBody?: string }): string {
  if (htmlBody !== undefined) return head + htmlBody.replace(activeElements, '<$1x-')
  return `${head}<pre style="white-space:pre-wrap;overflow-wrap:anywhere">${plainBody.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</pre>`
}
