#!/usr/bin/env node
// Plain JavaScript for an old Node, which only finds or fetches the right one and runs the program with it.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const [major, minor] = process.versions.node.split('.').map(Number)
const isRecent = major > 24 || (major === 24 && minor >= 11)
if (isRecent) {
  // The service is several processes: what one has compiled the others need not, which is half of the time a start takes. Where the folder
  // cannot be written, nothing changes.
  module.enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/postrider', import.meta.url)))
  await import('../src/main.ts')
} else runWith(installedNode() ?? fetchedNode())

/** @returns {string | undefined} the Node among the installed packages, as in a clone */
function installedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`)
  } catch {
    return undefined
  }
}

/** @returns {string} the Node that an earlier run fetched, or that npm fetches now */
function fetchedNode() {
  const { config } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
  const name = `node-${process.platform}-${process.arch}`
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'postrider')
  const node = join(folder, `node-${config?.node}`)
  if (existsSync(node)) return node
  console.error(`Postrider needs Node 24.11 or later; this is ${process.versions.node}. Fetching Node ${config?.node} once into ${folder}`)
  const work = join(folder, `fetch-${process.pid}`)
  try {
    mkdirSync(work, { recursive: true })
    const words = ['install', '--prefix', work, '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', `${name}@${config?.node}`]
    const { status } = spawnSync('npm', words, { stdio: ['ignore', 'ignore', 'inherit'] })
    if (status !== 0) throw new Error(`npm could not install ${name}`)
    renameSync(join(work, 'node_modules', name, 'bin/node'), node)
    return node
  } catch (error) {
    console.error(`${error.message}. Install Node 24.11 or later and run Postrider with it`)
    return process.exit(1)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** Runs this script with another Node, and ends as it does. @param {string} node */
function runWith(node) {
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`cannot run ${node}: ${error.message}`)
    process.exit(1)
  })
  child.on('exit', (code, signal) => process.exit(code ?? (signal === 'SIGINT' ? 130 : 143)))
}
