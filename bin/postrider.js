#!/usr/bin/env node
// Plain JavaScript on purpose: it must run on an old Node far enough to say what to do instead.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 11)) {
  console.error(`Postrider needs Node 24.11 or later; this is ${process.versions.node}.
Start it with "npm start" or "npx postrider <command>": npm ci brings the right Node with it.`)
  process.exit(1)
}
const { enableCompileCache } = await import('node:module')
const { fileURLToPath } = await import('node:url')
// The service is several processes: what one has compiled the others need not, which is half of the time a start takes. Where the folder
// cannot be written, nothing changes.
enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/postrider', import.meta.url)))
await import('../src/main.ts')
