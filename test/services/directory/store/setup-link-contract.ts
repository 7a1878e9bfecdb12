/** How every store handles set-up links; part of the contract suite. */
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Directory } from '../../../../services/directory/model.js'
import type { Store } from '../../../../services/directory/store/contract.js'

/** Adds the cases to the suite of one store. */
export function setupLinkContract(t: Test, store: Store, fresh: () => Promise<Directory>): void {
  const keep = async (directoryId: string, until = 2000, created = 1000) => {
    const link = { id: `lnk_${randomUUID()}`, hash: randomUUID(), directoryId, created, until }
    t.equal(await store.addSetupLink(link, created), true)
    return link
  }

  t.test('a set-up link is valid until it expires, and can show the secret once', async t => {
    const { id } = await fresh()
    const link = await keep(id)
    t.same(await store.setupLink(link.hash, 1999), link)
    t.equal(await store.setupLink(link.hash, 2000), undefined)
    t.equal(await store.setupLink(`${link.hash}.shown`, 1500), undefined)
    t.equal(await store.showOnce(link.hash, 2000), false)
    const shows = await Promise.all(Array.from({ length: 10 }, () => store.showOnce(link.hash, 1500)))
    t.equal(shows.filter(Boolean).length, 1)
    t.same(await store.setupLink(link.hash, 1600), { ...link, shown: 1500 })
    t.same(await store.setupLinks(id, 1600), [{ ...link, shown: 1500 }])
    t.equal(await store.setupLink(`${link.hash}.shown`, 1600), undefined)
  })

  t.test('a set-up link can create two new secrets at most', async t => {
    const { id } = await fresh()
    const link = await keep(id)
    t.equal(await store.countNewSecret(link.hash, 2000), false, 'an expired link can create none')
    t.equal(await store.countNewSecret(link.hash, 1500), true)
    t.same(await store.setupLink(link.hash, 1500), { ...link, made: 1 })
    const more = await Promise.all(Array.from({ length: 9 }, () => store.countNewSecret(link.hash, 1500)))
    t.equal(more.filter(Boolean).length, 1)
    await store.showOnce(link.hash, 1600)
    t.same(await store.setupLinks(id, 1700), [{ ...link, shown: 1600, made: 2 }])
    t.equal(await store.dropSetupLinks(id), 1)
  })

  t.test('a directory never has more than twenty set-up links, however many are made at once', async t => {
    const { id: directoryId } = await fresh()
    const make = (until: number) => {
      const link = { id: `lnk_${randomUUID()}`, hash: randomUUID(), directoryId, created: 1000, until }
      return store.addSetupLink(link, 1000)
    }
    const count = async () => (await store.setupLinks(directoryId, 1000)).length
    const made = await Promise.all(Array.from({ length: 30 }, () => make(2000)))
    t.equal(await count(), made.filter(Boolean).length)
    t.ok((await count()) <= 20)
    while ((await count()) < 20) t.equal(await make(2000), true)
    t.equal(await make(2000), false)
    t.equal(await count(), 20)
  })

  t.test('set-up links are deleted one by one, together or with their directory', async t => {
    const [{ id }, other] = [await fresh(), await fresh()]
    const [one, two, three] = [await keep(id), await keep(id, 2000, 1001), await keep(id, 2000, 1002)]
    const kept = await keep(other.id)
    await store.showOnce(two.hash, 1500)
    t.same(
      (await store.setupLinks(id, 1600)).map(link => link.id),
      [one.id, two.id, three.id],
    )
    t.same(await store.setupLinks(id, 2000), [])
    t.equal(await store.dropSetupLinks(other.id, two.id), 0, 'a link of another directory is not deleted')
    t.equal(await store.dropSetupLinks(id, two.id), 1)
    t.equal(await store.dropSetupLinks(id), 2)
    t.equal(await store.setupLink(one.hash, 1500), undefined)
    t.ok(await store.setupLink(kept.hash, 1500))
    await store.removeDirectory(other.id)
    while (await store.purgeSome());
    t.equal(await store.setupLink(kept.hash, 1500), undefined)
  })
}
