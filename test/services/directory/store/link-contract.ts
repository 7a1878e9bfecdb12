/** How every store handles one-time links; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory } from '../../../../services/directory/model.js'
import type { Store } from '../../../../services/directory/store/contract.js'

/** Adds the cases to the suite of one store. */
export function linkContract(t: Test, store: Store, fresh: () => Promise<Directory>): void {
  const keep = async (directoryId: string, until = 2000): Promise<string> => {
    const hash = randomUUID()
    await store.addLink({ hash, directoryId, until }, 1000)
    return hash
  }

  t.test('a link is valid until it expires, and can be taken once', async t => {
    const { id } = await fresh()
    const hash = await keep(id)
    t.same(await store.link(hash, 1999), { hash, directoryId: id, until: 2000 })
    t.equal(await store.link(hash, 2000), undefined)
    t.equal(await store.takeLink(hash, 2000), false)
    t.equal(await store.link('{"$ne":null}', 1000), undefined)
    const takers = await Promise.all(Array.from({ length: 10 }, () => store.takeLink(hash, 1500)))
    t.equal(takers.filter(Boolean).length, 1)
    t.equal(await store.link(hash, 1500), undefined)
  })

  t.test('the links of a directory are dropped together, and removed with it', async t => {
    const [{ id }, other] = [await fresh(), await fresh()]
    const [one, two, kept] = [await keep(id), await keep(id), await keep(other.id)]
    await store.dropLinks(id)
    t.same([await store.link(one, 1000), await store.link(two, 1000)], [undefined, undefined])
    t.ok(await store.link(kept, 1000))
    await store.removeDirectory(other.id)
    while (await store.purgeSome());
    t.equal(await store.link(kept, 1000), undefined)
  })

  t.test('expired links are deleted when the next one is made', async t => {
    const { id } = await fresh()
    const old = await keep(id, 500)
    t.ok(await store.link(old, 400))
    await keep(id)
    t.equal(await store.link(old, 400), undefined)
  })
}
