import { setTimeout as wait } from 'node:timers/promises'
import { test } from 'tap'
import { Deadlines, type Timed } from '../../../gateway/http1/deadlines.js'

class Wait implements Timed {
  deadline: number
  calls = 0
  constructor(deadline: number) {
    this.deadline = deadline
  }
  onDeadline(): void {
    this.calls += 1
  }
}

test('a deadline that passes calls back once', async t => {
  const deadlines = new Deadlines()
  const [soon, never, later] = [
    new Wait(deadlines.now() + 10),
    new Wait(Number.POSITIVE_INFINITY),
    new Wait(deadlines.now() + 60_000),
  ]
  for (const one of [soon, never, later]) deadlines.add(one)
  await wait(250)
  t.match([soon.calls, never.calls, later.calls], [1, 0, 0])
  t.equal(soon.deadline, Number.POSITIVE_INFINITY)

  soon.deadline = deadlines.now()
  await wait(150)
  t.equal(soon.calls, 2, 'a deadline set again calls back again')
  for (const one of [soon, never, later]) deadlines.delete(one)
})

test('a deadline among thousands calls back', async t => {
  const deadlines = new Deadlines()
  const many = Array.from({ length: 2_000 }, () => new Wait(Number.POSITIVE_INFINITY))
  const soon = new Wait(deadlines.now() + 10)
  for (const one of [...many, soon]) deadlines.add(one)
  await wait(600)
  t.equal(soon.calls, 1)
  for (const one of [...many, soon]) deadlines.delete(one)
})

test('a deleted deadline gets no callback', async t => {
  const deadlines = new Deadlines()
  const gone = new Wait(deadlines.now() + 10)
  deadlines.add(gone)
  deadlines.delete(gone)
  await wait(150)
  t.equal(gone.calls, 0)
})

test('no timer runs while nothing waits', async t => {
  const timers = (): number => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
  const before = timers()
  const deadlines = new Deadlines()
  const one = new Wait(Number.POSITIVE_INFINITY)
  deadlines.add(one)
  deadlines.delete(one)
  t.equal(timers(), before)
})
