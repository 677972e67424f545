import { expect, test } from 'vitest'
import { openChallengeContexts } from './challenge-contexts.ts'

test('a context is made once for a challenge, and again after it could not be made', async () => {
  // A name that no certificate can have.
  let name = '\ud800.example'
  const findByName = async () => ({ name, token: 't', keyAuthorization: 'k' })
  const contexts = openChallengeContexts({ findByName, findByToken: async () => undefined })
  await expect(contexts.find(name)).rejects.toThrow()
  name = 'mail.example.com'
  const made = await contexts.find(name)
  expect(made).toBeDefined()
  expect(await contexts.find(name)).toBe(made)
})
