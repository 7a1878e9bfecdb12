/**
 * A separate thread that ends a worker process when the supervisor has gone, even if the main thread is stuck.
 * Otherwise the process would keep the port from the next gateway.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const LOOK_MS = 1000
/** The thread runs nothing but a timer. */
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
