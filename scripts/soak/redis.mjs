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
    /** Makes it accept connections and answer nothing. */
    async pauseFor(ms) {
      child.kill('SIGSTOP')
      await sleep(ms)
      child.kill('SIGCONT')
    },
    /** Kills it, and starts it again empty. */
    async loseFor(ms) {
      kill()
      await sleep(ms)
      start()
    },
    /** The number of keys. */
    keys: () => Number(execFileSync('redis-cli', ['-p', String(port), 'dbsize'])),
    stop() {
      process.off('exit', kill)
      kill()
    },
  }
}
