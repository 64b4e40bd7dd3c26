/** Which internet addresses tools may reach: those of the public internet, unless the user says otherwise. Pure. */
import ipaddr from "ipaddr.js"

/** Whether an IP address, as text, is one of the public internet. */
export const isPublic = (address: string): boolean => {
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "")
  if (!ipaddr.isValid(bare)) return false
  const parsed = ipaddr.parse(bare)
  if (parsed instanceof ipaddr.IPv4) return parsed.range() === "unicast"
  if (parsed.isIPv4MappedAddress()) return isPublic(parsed.toIPv4Address().toString())
  return parsed.range() === "unicast"
}

/** The IP address that a URL's host name is, without brackets; undefined for a name. */
export const literal = (hostname: string): string | undefined => {
  const bare = hostname.replace(/^\[|\]$/g, "")
  return ipaddr.isValid(bare) ? bare : undefined
}
