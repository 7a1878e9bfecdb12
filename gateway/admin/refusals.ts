/** What a question to the admin port cannot have, as errors that routes answer by their kind. */
import type { FastifyInstance } from 'fastify'
import { sendProblem } from './problem.js'

/** What was asked for is not there: the sentence says what is. */
export class NotFound extends Error {}
/** Something else has that place. */
export class Taken extends Error {}
/** A counter that the question does not name, or a thing that cannot be. */
export class Unnamed extends Error {}
/** What counts or keeps cannot be reached. */
export class Unreachable extends Error {}

/** Answers them as 404, 409, 422 and 503. */
export function answerRefusals(app: FastifyInstance): void {
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof NotFound) return sendProblem(reply, 404, error.message)
    if (error instanceof Taken) return sendProblem(reply, 409, error.message)
    if (error instanceof Unnamed) return sendProblem(reply, 422, error.message)
    if (error instanceof Unreachable) return sendProblem(reply, 503, error.message)
    throw error
  })
}
