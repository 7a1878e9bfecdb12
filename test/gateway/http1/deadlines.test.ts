import { mock } from 'node:test'
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
  t.same([soon.calls, never.calls, later.calls], [1, 0, 0])
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
  const [started, stopped] = [
    mock.method(globalThis, 'setInterval'),
    mock.method(globalThis, 'clearInterval'),
  ]
  t.teardown(() => mock.restoreAll())
  const deadlines = new Deadlines()
  const [one, other] = [new Wait(Number.POSITIVE_INFINITY), new Wait(Number.POSITIVE_INFINITY)]
  for (const wait of [one, other]) deadlines.add(wait)
  deadlines.delete(one)
  t.same([started.mock.callCount(), stopped.mock.callCount()], [1, 0])
  deadlines.delete(other)
  t.same([started.mock.callCount(), stopped.mock.callCount()], [1, 1])
  t.equal(stopped.mock.calls[0]?.arguments[0], started.mock.calls[0]?.result)
})
