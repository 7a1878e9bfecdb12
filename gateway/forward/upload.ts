import { Readable } from 'node:stream'

/**
 * A client's body on its way to an upstream. Whoever reads it may destroy it (undici does when the upstream
 * fails) without cutting the client's connection, over which the answer has yet to go.
 */
export class Upload extends Readable {
  private readonly source: Readable

  constructor(source: Readable) {
    super()
    this.source = source
    source.on('data', this.onData).on('end', this.onEnd).on('close', this.onClose).on('error', this.onClose)
    source.pause()
    this.on('error', () => {})
  }

  /** True when the client has sent the whole body. */
  get complete(): boolean {
    return this.source.readableEnded
  }

  override _read(): void {
    this.source.resume()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const { source } = this
    source.off('data', this.onData).off('end', this.onEnd).off('close', this.onClose)
    source.pause()
    done(error)
  }

  private readonly onData = (chunk: Buffer): void => {
    if (!this.push(chunk)) this.source.pause()
  }

  private readonly onEnd = (): void => {
    this.push(null)
  }

  private readonly onClose = (): void => {
    if (!this.source.readableEnded) this.destroy(new Error('the client left while it sent its body'))
  }
}
