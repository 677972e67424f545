/** The address of another database on the same server. */
export const databaseAt = (serverUrl: string, name: string) => serverUrl.replace(/^([a-z]+:\/\/[^/]*\/)[^?]*/, `$1${name}`)
