/** Loaded into the gateway's process before it starts: tells, when asked, what that process holds. */
process.on('message', () => {
  // Twice, because what a finalizer lets go is free only then.
  globalThis.gc()
  globalThis.gc()
  const resources = {}
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1
  const { rss, heapUsed, external } = process.memoryUsage()
  process.send({ resources, rss, heapUsed, external })
})
process.channel.unref()
