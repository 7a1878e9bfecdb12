/** The routes in force, for the admin port. */
import type { Gateway } from '../../config/schema/gateway.js'
import type { RouteList } from '../admin/route-list.js'
import { whereTo } from './difference/routes.js'

/** The most that one answer lists. */
const MOST_ROUTES = 1000

/** In the order of gateway.yaml. */
export function listRoutes({ routes }: Gateway): RouteList {
  const listed = routes.slice(0, MOST_ROUTES).map(route => ({
    host: route.host ?? null,
    path: route.path,
    to: whereTo(route),
    strip_prefix: route.stripPrefix ?? null,
    add_prefix: route.addPrefix ?? null,
    auth: route.auth,
    scopes: route.scopes,
    cors: route.cors?.origins ?? [],
  }))
  return { total: routes.length, routes: listed }
}
