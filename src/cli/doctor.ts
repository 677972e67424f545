/** Placeholder. */
import type { Command } from './command.ts'

export const doctor: Command = { name: 'doctor', summary: '', help: '', options: {}, run: () => Promise.resolve() }
