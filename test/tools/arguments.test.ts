/** Options that cannot be meant are rejected. */
import t from 'tap'
import { sluice } from '../helpers/command.js'

t.test('an option of one value that is given twice is refused, by every command', async t => {
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
  t.equal(twice.code, 0, 'a switch that is on stays on')
})

t.test('an empty name is a variable that was not set, and is told as such', async t => {
  for (const [args, sentence] of [
    [['check', '--config', ''], '--config is empty.'],
    [['acts', '--live='], '--live is empty.'],
    [['init', ''], 'DIR is empty.'],
  ] as const) {
    const { code, err } = await sluice(args)
    t.equal(code, 2)
    t.ok(err.startsWith(sentence), err)
  }
})

t.test('what is repeated of a command line moves no cursor', async t => {
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

t.test('help of help is help', async t => {
  const { code, out } = await sluice(['help', 'help'])
  t.equal(code, 0)
  t.match(out, 'Usage: sluice COMMAND')
})
