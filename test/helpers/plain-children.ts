/**
 * Loaded before each test file (.taprc): programs that tests start run as people run them. The test runner would load its hooks
 * into each of them, which takes 0.3 s of CPU.
 */
import processOnSpawn from 'process-on-spawn'

processOnSpawn.removeAllListeners()
const options = process.env.NODE_OPTIONS?.split(' ').filter(option => !option.includes('@tapjs/processinfo'))
process.env.NODE_OPTIONS = options?.join(' ') ?? ''
