/**
 * A separate thread that ends a worker process when the supervisor has gone, even if the main thread is stuck.
 * Otherwise the process would keep the port from the next gateway.
 */
import { isMainThread, Worker, workerData } from 'node:worker_threads'

const LOOK_MS = 1000

/** Preloads of the process, as in NODE_OPTIONS, stay out of the thread: it runs nothing but a timer. */
const BARE = { execArgv: [], env: {} }

/** @param supervisor its process id */
export function endWith(supervisor: number): void {
  new Worker(new URL(import.meta.url), { workerData: supervisor, ...BARE }).unref()
}

if (!isMainThread) {
  setInterval(() => {
    if (process.ppid !== workerData) process.kill(process.pid, 'SIGKILL')
  }, LOOK_MS)
}
