/**
 * Shares the work of simultaneous requests with the same unsubscribe link: mail programs and strangers may repeat one many times. A later request
 * does the work again, because the suppression may have been removed meanwhile.
 */

/** Runs `work` once at a time for each token. */
export function openSharedUnsubscribes(): (token: string, work: () => Promise<boolean>) => Promise<boolean> {
  const running = new Map<string, Promise<boolean>>()
  return (token, work) => {
    const known = running.get(token)
    if (known) return known
    const begun = work().finally(() => running.delete(token))
    running.set(token, begun)
    return begun
  }
}
