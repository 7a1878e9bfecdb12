/** Real disks that are full or fail: a small tmpfs, and a preloaded library that makes system calls fail. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findCommand } from './child-server.js'
import { reportMissing } from './missing.js'
import { inProject } from './root.js'

export interface SmallDisk {
  readonly folder: string
  /** Fills the disk until at most `leaving` bytes are free. */
  fill(leaving: number): void
  /** Frees the space again. */
  free(): void
}

/** A tmpfs of `bytes`, unmounted with the test; undefined after reporting the test as skipped (a failure in CI). */
export function smallDisk(t: Test, bytes: number): SmallDisk | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'tmpfs', folder], {
      stdio: 'ignore',
    })
  } catch {
    rmSync(folder, { recursive: true })
    reportMissing(t, 'a small disk', 'run the tests as root where mounting is allowed')
    return undefined
  }
  t.teardown(() => {
    execFileSync('umount', ['--lazy', folder])
    rmSync(folder, { recursive: true })
  })
  const filler = join(folder, 'filler')
  return {
    folder,
    fill(leaving) {
      const { bavail, bsize } = statfsSync(folder)
      writeFileSync(filler, Buffer.alloc(Math.max(0, bavail * bsize - leaving)))
    },
    free: () => rmSync(filler),
  }
}

export interface FailingDisk {
  /** Environment for the process that is meant to fail. */
  readonly env: Readonly<Record<string, string>>
  /** From now on calls of that kind fail with the errno, such as 5 for EIO or 28 for ENOSPC. */
  fail(call: 'fsync' | 'write', errno: number): void
  heal(): void
}

/** Fails calls on files whose path contains `part`; undefined after reporting the test as skipped (a failure in CI). */
export function failingDisk(t: Test, part: string): FailingDisk | undefined {
  const compiler = findCommand(['gcc', 'cc'])
  if (process.platform !== 'linux' || compiler === undefined) {
    reportMissing(t, 'a C compiler on Linux', 'install gcc')
    return undefined
  }
  const folder = mkdtempSync(join(tmpdir(), 'sluice-failing-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const [library, plan] = [join(folder, 'failing-disk.so'), join(folder, 'plan')]
  const source = inProject('test', 'helpers', 'failing-disk.c')
  execFileSync(compiler, ['-shared', '-fPIC', '-O1', '-o', library, source, '-ldl'])
  return {
    env: { LD_PRELOAD: library, FAILING_DISK: part, FAILING_DISK_PLAN: plan },
    fail: (call, errno) => writeFileSync(plan, `${call} ${errno}`),
    heal: () => rmSync(plan),
  }
}
