#!/usr/bin/env node
// Plain JavaScript on purpose: it must run on an old Node far enough to say what to do instead.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 11)) {
  console.error(`Postrider needs Node 24.11 or later; this is ${process.versions.node}.
Start it with "npm start" or "npx postrider <command>": npm ci brings the right Node with it.`)
  process.exit(1)
}
await import('../src/main.ts')
