/** A Redis that can be paused and killed. */
import { execFileSync, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'

export function startRedis(folder, port) {
  let child
  const start = () => {
    const args = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder]
    child = spawn('redis-server', args.map(String), { stdio: 'ignore' })
  }
  const kill = () => child.kill('SIGKILL')
  start()
  process.on('exit', kill)
  return {
    url: `redis://127.0.0.1:${port}`,
    /** It accepts connections, and answers nothing. */
    async pauseFor(ms) {
      child.kill('SIGSTOP')
      await sleep(ms)
      child.kill('SIGCONT')
    },
    /** It is gone, and comes back empty. */
    async loseFor(ms) {
      kill()
      await sleep(ms)
      start()
    },
    /** How many keys it holds. */
    keys: () => Number(execFileSync('redis-cli', ['-p', String(port), 'dbsize'])),
    stop: kill,
  }
}
