/** How errors of admin requests are answered: each class has its own status. */
import type { FastifyInstance } from 'fastify'
import { NotFound, Taken, Unnamed, Unreachable } from '../errors.js'
import { sendProblem } from './problem.js'

/** Answers these errors with 404, 409, 422 and 503. */
export function answerRefusals(app: FastifyInstance): void {
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof NotFound) return sendProblem(reply, 404, error.message)
    if (error instanceof Taken) return sendProblem(reply, 409, error.message)
    if (error instanceof Unnamed) return sendProblem(reply, 422, error.message)
    if (error instanceof Unreachable) return sendProblem(reply, 503, error.message)
    throw error
  })
}
