/** The systemd unit: accepted by systemd, and sandboxed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { runTool } from '../helpers/deploy-tools.js'
import { projectFile } from '../helpers/root.js'

const unit = projectFile('deploy', 'systemd', 'sluice.service')

t.test('systemd accepts the unit and rates it as well sandboxed', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-systemd-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'sluice.service')
  // systemd checks that the program exists, and it is not installed here.
  writeFileSync(file, unit.replace('/opt/sluice/bin/sluice', process.execPath))
  runTool(t, 'systemd-analyze', ['verify', '--man=no', file])
  const exposure = runTool(t, 'systemd-analyze', ['security', '--offline=yes', '--threshold=25', file])
  if (exposure !== undefined) t.match(exposure, 'Overall exposure level')
})

t.test('the stop timeout of the unit is longer than the drain time', async t => {
  const seconds = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1])
  const drain = seconds(projectFile('config', 'gateway.yaml'), /^drain: (\d+)s/m)
  t.ok(seconds(unit, /^TimeoutStopSec=(\d+)$/m) >= drain + 10)
})
