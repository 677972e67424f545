/** Names of objects that audit entries give only by id or in part: the address of a route and the host of a track domain, while they exist. */
import { useQuery } from '@tanstack/react-query'
import { get, getPage } from '../api-client.ts'
import type { RoutesCreateData, ShownAuditEntry, TrackingListData } from '../api-types.ts'
import { useHere } from '../session.tsx'

const staleTime = 60_000
const maxRoutes = 100

/** By id. */
export function useNames(entries: readonly ShownAuditEntry[]): ReadonlyMap<string, string> {
  const { scoped } = useHere()
  const isOf = (area: string) => entries.some(({ action }) => action.startsWith(area))
  const routesPath = scoped('/v1/routes', { perPage: maxRoutes })
  const tracksPath = scoped('/v1/tracking')
  const routes = useQuery({
    queryKey: ['routes', routesPath],
    queryFn: () => getPage<RoutesCreateData>(routesPath),
    enabled: isOf('routes.'),
    staleTime,
  })
  const tracks = useQuery({
    queryKey: ['tracking', tracksPath],
    queryFn: () => get<TrackingListData>(tracksPath),
    enabled: isOf('tracking.'),
    staleTime,
  })
  return new Map([
    ...(routes.data?.items ?? []).map(({ id, address }): [string, string] => [String(id), address]),
    ...(tracks.data?.trackDomains ?? []).map(({ id, fullName }): [string, string] => [String(id), fullName]),
  ])
}
