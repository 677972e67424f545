/** The dependencies that are compiled into the program's files; all others are installed beside it. */

/** typebox has 373 modules; the MCP server with zod is 17 MB, of which the program needs a small part. */
const bundledPackages: readonly string[] = ['typebox', '@modelcontextprotocol/server', '@modelcontextprotocol/core', 'zod']

/** `id`: an import such as `zod` or `zod/v4`. */
export const isBundled = (id: string): boolean => bundledPackages.some((name) => id === name || id.startsWith(`${name}/`))
