/** Which proxy the environment names for an address, by the usual variables. Pure. */
import * as Address from "./Address.ts"

export type Environment = Readonly<Record<string, string | undefined>>

/** The proxy's address; undefined where a request goes directly. This machine itself is never reached through a proxy. */
export const of = (url: URL, environment: Environment): string | undefined => {
  const value = (...names: ReadonlyArray<string>): string | undefined => {
    for (const name of names) {
      const found = environment[name]?.trim()
      if (found !== undefined && found !== "") return found
    }
    return undefined
  }
  const plain = ["http_proxy", "HTTP_PROXY"]
  const proxy = value(...(url.protocol === "https:" ? ["https_proxy", "HTTPS_PROXY", ...plain] : plain))
  if (proxy === undefined || isLoopback(url.hostname)) return undefined
  return excepted(url, value("no_proxy", "NO_PROXY") ?? "") ? undefined : proxy
}

const isLoopback = (hostname: string): boolean =>
  Address.isLoopbackName(hostname) || hostname === "[::1]" || /^127\./.test(hostname)

/** Whether an entry of NO_PROXY is this host or a domain that it lies in; one with a port counts for that port alone. */
const excepted = (url: URL, list: string): boolean => {
  const host = url.hostname.toLowerCase()
  const port = url.port === "" ? (url.protocol === "https:" ? "443" : "80") : url.port
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== "")
    .some((entry) => {
      if (entry === "*") return true
      const [, name = "", only] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(entry) ?? [undefined, entry]
      const domain = name.replace(/^\*?\./, "")
      return (only === undefined || only === port) && (host === domain || host.endsWith(`.${domain}`))
    })
}
