/** What is said of options that cannot be meant. */
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
