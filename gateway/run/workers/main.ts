/** Entry point of a worker process; its argument is the path of the configuration. */
import { work } from './worker.js'

await work(process.argv[2] as string)
