/** How a negotiated limit set on the admin port is called: by its project and bucket, neither of which has a slash. */

export interface QuotaName {
  readonly project: string
  readonly bucket: string
}

/** The id that it is stored under. */
export function quotaId({ project, bucket }: QuotaName): string {
  return `${project}/${bucket}`
}

/** The path that sets and undoes it, which is also the source of its rule. */
export function quotaPath(id: string): string {
  const [project, bucket] = id.split('/')
  return `/projects/${project}/overrides/${bucket}`
}
