/** Entry point of a worker process; its argument is the path of the configuration. */

// A terminal or service manager may signal every process; only the supervisor reacts. Set before the worker's modules
// are loaded, which takes a while.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined)
const { work } = await import('./worker.js')

await work(process.argv[2] as string)
