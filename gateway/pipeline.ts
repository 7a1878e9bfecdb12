/**
 * The path of a request: listen → identify → match → decide → forward → observe.
 * The rooms are handed in as functions; this file only says in which order they are entered.
 */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex, Readable } from 'node:stream'
import { GatewayError } from './errors.js'
import type { Rejection } from './forward/reject.js'
import type { Exchange, UpgradeExchange } from './forward/transport.js'
import { Passage } from './passage.js'
import type { Facts, Finished, Log, Matched, Project, Verdict } from './types.js'

/** A way to one upstream, for requests and for upgrades. */
export interface Upstream {
  readonly name: string
  forward(exchange: Exchange): void
  upgrade(exchange: UpgradeExchange): void
}

/** One configuration, compiled: swapped whole, while requests under way end on theirs. */
export interface Snapshot {
  readonly revision: string
  identify(facts: Facts): Project
  route(facts: Facts): Upstream | undefined
  match(facts: Facts, project: Project): Matched[]
}

export interface Rooms {
  readonly log: Log
  snapshot(): Snapshot
  readFacts(req: IncomingMessage): Facts
  /** True when a rule's key may stand in the request's body. */
  needsBody(matched: Matched, facts: Facts): boolean
  /** The first bytes of the body, waited for; `body` then yields all of it. */
  peekBody(req: IncomingMessage): Promise<{ prefix: Buffer; body: Readable }>
  /** The first bytes of the body, reported while it streams on. */
  tapBody(req: IncomingMessage, onPrefix: (prefix: Buffer) => void): Readable
  decide(request: {
    facts: Facts
    project: Project
    matched: readonly Matched[]
    bodyPrefix?: Buffer | undefined
  }): Verdict | Promise<Verdict>
  /** Fields of ours for an answer, refused or forwarded. */
  answerFields(facts: Facts, verdict: Verdict | undefined): string[]
  /** Fields only our own answers carry. */
  rejectionFields(facts: Facts): string[]
  rejectionOf(verdict: Verdict, requestId: string): Rejection
  sendRejection(req: IncomingMessage, res: ServerResponse, rejection: Rejection): void
  finished(event: Finished): void
}

export interface Pipeline {
  request(req: IncomingMessage, res: ServerResponse): void
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
}

export function createPipeline(rooms: Rooms): Pipeline {
  return {
    request(req, res) {
      enter(req, res, passage => {
        if (passage.facts.path === '*') return answerServerOptions(res)
        const { facts, req } = passage
        const [beside, asked] = partition(
          passage.matched,
          matched => matched.rule.mode === 'report-only' && rooms.needsBody(matched, facts),
        )
        const forward = (body?: Readable): void => {
          passage.upstream.forward({
            ...exchangeOf(passage),
            res,
            body: body ?? (beside.length > 0 ? watch(passage, beside) : undefined),
            keepUpstream: passage.verdict?.holdsSlot ?? false,
          })
        }
        if (!asked.some(matched => rooms.needsBody(matched, facts))) return judge(passage, asked, forward)
        rooms.peekBody(req).then(
          ({ prefix, body }) => judge(passage, passage.matched, () => forward(body), prefix),
          error => passage.abandon(error),
        )
      })
    },

    upgrade(req, socket, head) {
      // Refusals need a response object; the 101 itself is relayed by the transport.
      const res = new ServerResponse(req)
      res.shouldKeepAlive = false
      res.assignSocket(socket as Socket)
      res.on('finish', () => socket.end())
      enter(req, res, passage => {
        judge(passage, passage.matched, () => {
          const onAnswer = (status: number) => passage.relayed(status)
          passage.upstream.upgrade({ ...exchangeOf(passage), socket, head, onAnswer })
        })
      })
    },
  }

  /** Listen, identify and match; whatever goes wrong in there is answered. */
  function enter(req: IncomingMessage, res: ServerResponse, go: (passage: Passage) => void): void {
    const passage = new Passage(rooms, req, res)
    passage.attempt(() => {
      const snapshot = rooms.snapshot()
      passage.facts = rooms.readFacts(req)
      passage.revision = snapshot.revision
      if (passage.facts.path !== '*') {
        passage.project = snapshot.identify(passage.facts)
        const upstream = snapshot.route(passage.facts)
        if (upstream === undefined) throw new GatewayError('no-route')
        passage.upstream = upstream
        passage.matched = snapshot.match(passage.facts, passage.project)
      }
      go(passage)
    })
  }

  /** Decide, then forward or refuse. */
  function judge(passage: Passage, asked: readonly Matched[], forward: () => void, prefix?: Buffer): void {
    const { facts, project } = passage
    const startedAt = performance.now()
    const settle = (verdict: Verdict): void => {
      passage.limiterUs = Math.round((performance.now() - startedAt) * 1000)
      passage.hold(verdict)
      if (passage.res.destroyed) verdict.release()
      else if (verdict.allowed) passage.attempt(forward)
      else passage.refuse(rooms.rejectionOf(verdict, facts.id))
    }
    const verdict = rooms.decide({ facts, project, matched: asked, bodyPrefix: prefix })
    if (verdict instanceof Promise) verdict.then(settle).catch(error => passage.abandon(error))
    else settle(verdict)
  }

  /** Report-only rules that look into the body are judged while it streams on: they may not delay anything. */
  function watch(passage: Passage, beside: readonly Matched[]): Readable {
    const { facts, project, req } = passage
    return rooms.tapBody(req, bodyPrefix => {
      const verdict = rooms.decide({ facts, project, matched: beside, bodyPrefix })
      passage.holdBeside(verdict)
    })
  }

  function exchangeOf(passage: Passage): Pick<Exchange, keyof Exchange & keyof UpgradeExchange> {
    const { facts, project, req, verdict } = passage
    return {
      facts,
      project,
      req,
      answerFields: rooms.answerFields(facts, verdict),
      onUpstreamEnd: () => passage.release(),
      fail: code => passage.refuse({ code, requestId: facts.id }),
    }
  }
}

/** `OPTIONS *` asks about the server itself (RFC 9110, 9.3.7): this one. */
function answerServerOptions(res: ServerResponse): void {
  res.writeHead(204, ['Allow', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'])
  res.end()
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): [T[], T[]] {
  const yes: T[] = []
  const no: T[] = []
  for (const item of items) (test(item) ? yes : no).push(item)
  return [yes, no]
}
