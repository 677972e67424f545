/** The same server's other database. */
export const databaseAt = (serverUrl: string, name: string) => serverUrl.replace(/^([a-z]+:\/\/[^/]*\/)[^?]*/, `$1${name}`)
