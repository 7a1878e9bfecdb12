import fc from 'fast-check'
import t from 'tap'
import { Overlay } from '../../../gateway/policy/overlay.js'

const entries = fc.array(fc.tuple(fc.constantFrom<string[]>('a', 'b', 'c', 'd', 'e'), fc.nat(9)))

t.test('an overlay reads like a copy of the map with its entries written in', async t => {
  fc.assert(
    fc.property(entries, entries, (below, own) => {
      const overlay = new Overlay(new Map(below))
      const copy = new Map(below)
      for (const [name, value] of own) {
        overlay.set(name, value)
        copy.set(name, value)
      }
      t.same([...overlay], [...copy])
      t.same([...overlay.keys()], [...copy.keys()])
      t.same([...overlay.values()], [...copy.values()])
      t.equal(overlay.size, copy.size)
      for (const name of 'abcdef') {
        t.equal(overlay.get(name), copy.get(name))
        t.equal(overlay.has(name), copy.has(name))
      }
      const isBelow = new Set(below.map(([name]) => name))
      t.same(
        overlay.added,
        [...copy.keys()].filter(name => !isBelow.has(name)),
      )
    }),
    { numRuns: 30 },
  )
})
