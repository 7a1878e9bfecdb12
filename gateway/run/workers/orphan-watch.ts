/**
 * A thread beside a worker's own: it ends the process when the supervisor is gone, also while the worker is stuck and hears
 * of nothing. Such a process would keep the port from the next gateway.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const LOOK_MS = 1000
/** The thread holds no more than a timer. */
const LIMITS = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 2, stackSizeMb: 1 }

/** @param supervisor its process id */
export function endWith(supervisor: number): void {
  new Worker(new URL(import.meta.url), { workerData: supervisor, resourceLimits: LIMITS }).unref()
}

if (!isMainThread) {
  setInterval(() => {
    if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL')
  }, LOOK_MS)
}
