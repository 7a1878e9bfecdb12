/** What a shell completes after `sluice`, tested in the real shells where they are installed. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { COMMANDS } from '../../tools/commands.js'
import { sluice } from '../helpers/command.js'

const script = async (shell: string) => (await sluice(['completion', shell])).out

/** What bash offers for the last word. */
async function offered(t: Test, ...words: string[]): Promise<string[]> {
  const file = join(t.testdir(), 'sluice.bash')
  writeFileSync(file, await script('bash'))
  const text = `source ${file}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluice; printf '%s\\n' "\${COMPREPLY[@]}"; complete -p sluice >&2`
  const { stdout, stderr } = spawnSync('bash', ['-c', text, 'bash', 'sluice', ...words], { encoding: 'utf8' })
  t.match(stderr, '-F _sluice sluice')
  return stdout.split('\n').filter(Boolean)
}

t.test('bash completes commands, their operands and their options', async t => {
  t.same(await offered(t, 'ex'), ['explain'])
  const all = await offered(t, '')
  for (const { name } of COMMANDS) t.ok(all.includes(name), name)
  t.same(await offered(t, 'explain', 'GET', '/', '--h'), ['--host', '--header', '--help'])
  t.same(await offered(t, 'encryption', ''), ['rotate', '--json', '-h', '--help'])
  t.same((await offered(t, 'keys', '')).slice(0, 4), ['add', 'list', 'revoke', 'rotate'])
  t.same(await offered(t, 'help', 'comp'), ['completion'])
  t.same(await offered(t, 'completion', 'z'), ['zsh'])
  t.same(await offered(t, 'plugin', 'new', 'mine', '--kind', ''), ['limit', 'identify', 'observe'])
  t.same(await offered(t, 'plugin', 'new', 'mine', '--kind', '=', 'ob'), ['observe'])
  t.same(await offered(t, 'check', '--config', ''), [], 'names of files are left to bash')
  t.same(await offered(t, 'nothing', '--'), [])
})

for (const [shell, check] of [
  ['zsh', ['-n']],
  ['fish', ['--no-execute']],
] as const) {
  t.test(`the script for ${shell} is well-formed and contains every command`, async t => {
    const text = await script(shell)
    for (const { name } of COMMANDS) t.match(text, new RegExp(`\\b${name}\\b`))
    const file = join(t.testdir(), 'script')
    writeFileSync(file, text)
    const { error, status, stderr } = spawnSync(shell, [...check, file], { encoding: 'utf8' })
    if (error === undefined) t.equal(status, 0, stderr)
    else t.comment(`${shell} is not installed here`)
  })
}

t.test('an unknown shell is refused with a suggestion', async t => {
  const { code, err } = await sluice(['completion', 'bsh'])
  t.equal(code, 2)
  t.match(err, 'There is no completion for "bsh", only for bash, zsh and fish. Did you mean bash?')
})
