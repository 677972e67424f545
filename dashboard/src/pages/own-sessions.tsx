/** The sessions of the signed-in person: how many there are, and an end to all others. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post } from '../api-client.ts'
import type { OwnSessionsResponse } from '../api-types.ts'
import { Confirm } from '../parts/action-dialogs.tsx'
import { Button, Problem, SettingRow } from '../parts/basic-components.tsx'
import { Time } from '../parts/time-and-copy.tsx'
import { toast } from '../parts/toast.tsx'
import { texts } from '../texts.ts'

const words = texts.ownSessions
const key = ['own sessions']

export function OwnSessions() {
  const client = useQueryClient()
  const [isEnding, setEnding] = useState(false)
  const { data, error } = useQuery({ queryKey: key, queryFn: () => get<OwnSessionsResponse>('/dashboard/api/sessions') })
  const sessions = data?.sessions ?? []
  return (
    <>
      <SettingRow title={words.title} control={sessions.length > 1 && <Button onClick={() => setEnding(true)}>{words.endOthers}</Button>}>
        <Problem error={error} />
        {data && <p>{words.count(sessions.length)}</p>}
        {sessions.length > 1 && (
          <ul className="mt-1">
            {sessions.map(({ startedAt, seenAt, isThis }) => (
              <li key={`${startedAt} ${seenAt}`}>
                {isThis ? words.here : words.elsewhere} {words.since} <Time at={startedAt} />
                {!isThis && (
                  <>
                    , {words.seen} <Time at={seenAt} />
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
      </SettingRow>
      {isEnding && (
        <Confirm
          title={words.endTitle}
          text={words.endText}
          action={words.endOthers}
          run={() => post('/dashboard/api/sessions/end-others')}
          onDone={async () => {
            setEnding(false)
            toast(words.ended)
            await client.invalidateQueries({ queryKey: key })
          }}
          onClose={() => setEnding(false)}
        />
      )}
    </>
  )
}
