import t from 'tap'
import { fractionOf } from '../../../config/words/share.js'

t.test('similar keys are spread evenly over the fractions', async t => {
  const tenths = Array<number>(10).fill(0)
  for (let i = 0; i < 10_000; i += 1) {
    const tenth = Math.floor(fractionOf(`sluice:{project-${i}}:e:project-limits:catch-all`) * 10)
    tenths[tenth] = (tenths[tenth] as number) + 1
  }
  t.ok(
    tenths.every(tenth => tenth > 850 && tenth < 1150),
    `of 10,000 keys about 1,000 fall into each tenth: ${tenths}`,
  )
})
