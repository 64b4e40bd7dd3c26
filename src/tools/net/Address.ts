/** Which internet addresses tools may reach: those of the public internet, unless the user says otherwise. Pure. */
import ipaddr from "ipaddr.js"

const parsed = (address: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined => {
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "")
  // The library takes the old way to write an IPv4 address as IPv6 for another; in digits there is no doubt.
  const url = `http://[${bare}]/`
  const plain = bare.includes(":") && URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : bare
  return ipaddr.isValid(plain) ? ipaddr.parse(plain) : undefined
}

/** Whether an IP address, as text in any notation, is one of the public internet. */
export const isPublic = (address: string): boolean => {
  const ip = parsed(address)
  return ip !== undefined && (ip instanceof ipaddr.IPv4 ? ip.range() === "unicast" : isPublicV6(ip))
}

const isPublicV6 = (ip: ipaddr.IPv6): boolean => {
  const range = ip.range()
  if (range === "ipv4Mapped") return ip.toIPv4Address().range() === "unicast"
  // Networks without IPv4 reach it under this prefix: what counts is the address inside.
  if (range === "rfc6052" && ip.parts[2] === 0) return new ipaddr.IPv4(ip.toByteArray().slice(12)).range() === "unicast"
  // All of the internet lies in 2000::/3; outside are old and local ways to write IPv4 addresses and networks of one's own.
  return range === "unicast" && ((ip.parts[0] ?? 0) & 0xe000) === 0x2000
}

/** The IP address that a host name is, in its usual notation; undefined for a name. */
export const literal = (hostname: string): string | undefined => parsed(hostname)?.toString()

/** Whether a name means this machine itself, wherever it is looked up. */
export const isLoopbackName = (hostname: string): boolean => /^(?:.*\.)?localhost\.?$/i.test(hostname)

const internal = /\.(?:local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa)$/i

/** Whether a name is one that only a network of one's own knows. */
export const isInternalName = (hostname: string): boolean => {
  const bare = hostname.replace(/\.$/, "")
  return !bare.includes(".") || internal.test(bare) || isLoopbackName(bare)
}
