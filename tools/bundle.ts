/**
 * `node tools/bundle.ts FOLDER`: compiles the program into few JavaScript files. A start loads them in half of the processor time that the
 * 900 modules took one by one, each with a look-up, a read and a link. Files that the program reads stay at their places below FOLDER.
 */
import { cpSync, rmSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { type OutputChunk, type Plugin, rolldown } from 'rolldown'
import { isBundled } from './bundled-packages.ts'
import { filesBelow } from './source-files.ts'

const root = join(import.meta.dirname, '..')
const source = join(root, 'src')
const isIncluded = (id: string) => /^[./#]/.test(id) || isBundled(id)

/**
 * Modules find their files by `import.meta.url`. In the files it is that of the folder; so it becomes the URL at which the module would be
 * if it had been compiled alone.
 */
const keepModuleUrls: Plugin = {
  name: 'module URLs',
  transform(code, id) {
    if (!id.startsWith(`${source}/`) || !code.includes('import.meta.url')) return undefined
    const place = relative(source, id).replace(/\.ts$/, '.js')
    // No map: lines stay, and only columns after the URL move.
    return { code: code.replaceAll('import.meta.url', `new URL('./${place}', import.meta.url).href`), map: null }
  },
}

/** The entry points: the program, and the modules that run in threads or child processes of their own. */
function entryPoints(): Record<string, string> {
  const [threads, children] = [filesBelow(root, 'src', '-thread.ts'), filesBelow(root, 'src', '-child.ts')]
  if (threads.length === 0 || children.length === 0) throw new Error('src has no module that runs in a thread or in a child process')
  return Object.fromEntries(
    ['src/main.ts', ...threads, ...children].map((path) => [path.slice('src/'.length, -'.ts'.length), join(root, path)]),
  )
}

/** A module with a URL of its own must be in a file directly in the folder. */
function checkPlaces(chunks: readonly OutputChunk[]): void {
  for (const { fileName, code } of chunks)
    if (dirname(fileName) !== '.' && code.includes('import.meta.url'))
      throw new Error(`${fileName} uses import.meta.url, which is another there`)
}

async function bundle(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  const built = await rolldown({
    input: entryPoints(),
    cwd: root,
    platform: 'node',
    external: (id) => !isIncluded(id),
    plugins: [keepModuleUrls],
  })
  const { output } = await built.write({
    dir: folder,
    format: 'esm',
    sourcemap: true,
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    // Names stay, so that a stack trace says which function failed.
    minify: { mangle: false, compress: true, codegen: true },
  })
  await built.close()
  checkPlaces(output.filter((one) => one.type === 'chunk'))
  for (const path of filesBelow(root, 'src', ''))
    if (!path.endsWith('.ts')) cpSync(join(root, path), join(folder, path.slice('src/'.length)), { recursive: true })
}

await bundle(resolve(process.argv[2] ?? 'artifacts/packages/postrider/lib'))
