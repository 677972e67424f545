/** Loaded with `--import`: prints the paths of all loaded modules to standard error when the process ends, as JSON. */
import { registerHooks } from 'node:module'

const loaded: string[] = []
registerHooks({
  load(url, context, next) {
    loaded.push(url)
    return next(url, context)
  },
})
process.on('exit', () => process.stderr.write(JSON.stringify(loaded)))
