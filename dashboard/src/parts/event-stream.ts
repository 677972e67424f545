/** Reads the event stream of /v1 by fetch, because an EventSource cannot set headers. Resumes at its position after a lost connection. */
import { useEffect, useRef } from 'react'
import { withQuery } from '../api-client.ts'

const comeBackMs = 2000
/** Minimum time between two reloads of a page, for any number of events. */
const restMs = 1000

/** Calls `onNews` after events of the tenant's emails, or of all. */
export function useNews(tenantId: string | undefined, onNews: () => void): void {
  const call = useRef(onNews)
  call.current = onNews
  useEffect(() => {
    const leaving = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const notify = () => {
      timer ??= setTimeout(() => {
        timer = undefined
        call.current()
      }, restMs)
    }
    void follow(withQuery('/v1/events/stream', { tenantId }), notify, leaving.signal)
    return () => {
      leaving.abort()
      clearTimeout(timer)
    }
  }, [tenantId])
}

async function follow(path: string, notify: () => void, signal: AbortSignal): Promise<void> {
  let last = ''
  while (!signal.aborted) {
    try {
      const answer = await fetch(path, { headers: { 'x-postrider-session': '1', ...(last ? { 'last-event-id': last } : {}) }, signal })
      if (answer.status === 401) return
      const lines = answer.ok ? answer.body?.pipeThrough(new TextDecoderStream()).getReader() : undefined
      let rest = ''
      for (let piece = await lines?.read(); piece && !piece.done; piece = await lines?.read()) {
        const whole = (rest + piece.value).split('\n')
        rest = whole.pop() ?? ''
        for (const line of whole) {
          if (line.startsWith('id: ')) last = line.slice('id: '.length)
          else if (line.startsWith('event: ')) notify()
        }
      }
    } catch {
      // The connection was lost, or the user left the page.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, comeBackMs))
  }
}
