import type { Work } from './compare.js'

/** Up to these numbers deletions pass: in a small directory every single one is a large share. */
const always = { users: 1, groups: 1, memberships: 10 }

/**
 * Why a pull must delete nothing, or undefined. An empty list of users, or the loss of more than `share` (0 to 1) of
 * the users, groups or memberships at once, is more likely a fault at the provider than intended.
 */
export function refusal(work: Work, share: number): string | undefined {
  const { users, groups, moves, memberships } = work
  const leaving = [...moves.values()].reduce((sum, move) => sum + move.leaving.length, 0)
  const losses = [
    { name: 'users', going: users.gone.length, all: users.gone.length + users.ids.size },
    { name: 'groups', going: groups.gone.length, all: groups.gone.length + groups.ids.size },
    { name: 'memberships', going: leaving, all: memberships },
  ] as const
  const reasons = losses
    .filter(
      ({ name, going, all }) =>
        going > all * share && (going > always[name] || (going === all && name === 'users')),
    )
    .map(({ name, going, all }) => `${going} of ${all} ${name}`)
  if (reasons.length === 0) return undefined
  return `Nothing was deleted: ${reasons.join(' and ')} would be deleted, more than ${Math.round(share * 100)} % at once; if that is intended, pull once with allowDeletions=true`
}
