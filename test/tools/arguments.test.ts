/** Options that cannot be meant are rejected. */
import t from 'tap'
import { sluice } from '../helpers/command.js'

t.test('an option with one value is refused when it is given twice', async t => {
  for (const [command, option, value] of [
    ['serve', 'config', 'PATH'],
    ['check', 'config', 'PATH'],
    ['explain', 'project', 'ID'],
    ['report', 'percentile', 'N'],
  ] as const) {
    const { code, out, err } = await sluice([command, `--${option}`, 'a', `--${option}=b`])
    t.equal(code, 2, command)
    t.equal(out, '')
    t.match(err, `--${option} is given more than once; it takes one ${value}.`)
  }
  const twice = await sluice(['check', '--config', 'config', '--json', '--json'])
  t.equal(twice.code, 0, 'a switch may be repeated')
})

t.test('an empty argument is reported as empty', async t => {
  for (const [args, sentence] of [
    [['check', '--config', ''], '--config is empty.'],
    [['overrides', '--live='], '--live is empty.'],
    [['init', ''], 'DIR is empty.'],
  ] as const) {
    const { code, err } = await sluice(args)
    t.equal(code, 2)
    t.ok(err.startsWith(sentence), err)
  }
})

t.test('echoed arguments contain no escape characters', async t => {
  for (const args of [
    ['\x1b[31mserve'],
    ['check', '\x1b[2J'],
    ['import', '\x1b[2J', 'x'],
    ['check', '--\x1b'],
  ]) {
    const { code, err } = await sluice(args)
    t.equal(code, 2)
    t.match(err, '\ufffd')
    t.notMatch(err, '\x1b')
  }
})

t.test('help for help shows the general help', async t => {
  const { code, out } = await sluice(['help', 'help'])
  t.equal(code, 0)
  t.match(out, 'Usage: sluice COMMAND')
})
