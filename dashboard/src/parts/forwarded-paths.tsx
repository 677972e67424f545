/** The paths of a track domain that a web server in front of Postrider forwards, as a part of its configuration to copy. */
import { useState } from 'react'
import { texts } from '../texts.ts'
import { Coded } from './basic-components.tsx'
import { Tabs } from './tabs.tsx'
import { CopyIconButton, Pre } from './time-and-copy.tsx'

const words = texts.tracking
const upstream = '127.0.0.1:3025'

/** `origin`: of the links in emails. The address of the client and the name of the host are passed on, as docs/tracking-https.md asks. */
const snippets = {
  caddy: (origin: string) => `${origin} {
  @postrider path /o/* /c/* /u/*
  reverse_proxy @postrider ${upstream}
}`,
  nginx: (origin: string) => `# In the server block of ${origin.replace(/^https?:\/\//, '')}
location ~ ^/[ocu]/ {
  proxy_pass http://${upstream};
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_set_header X-Forwarded-Proto $scheme;
}`,
} as const
type Server = keyof typeof snippets
const tabs = [
  { name: 'caddy', label: 'Caddy' },
  { name: 'nginx', label: 'nginx' },
] as const

export function ForwardedPaths({ origin }: { origin: string }) {
  const [server, setServer] = useState<Server>('caddy')
  const text = snippets[server](origin)
  return (
    <div className="mt-5">
      <h3 className="font-semibold">{words.served}</h3>
      <p className="mb-1 text-soft">
        <Coded>{words.servedPaths}</Coded>
      </p>
      <Tabs
        label={words.webServer}
        tabs={tabs}
        chosen={server}
        onChoose={setServer}
        aside={<CopyIconButton text={text} label={words.copySnippet} />}
      >
        <Pre label={words.snippet}>{text}</Pre>
      </Tabs>
      <p className="mt-2 text-xs text-soft">
        <Coded>{words.upstream}</Coded>
      </p>
    </div>
  )
}
