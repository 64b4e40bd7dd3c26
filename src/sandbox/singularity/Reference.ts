/** What the `image` of a prompt means: a file or folder of this machine, or something to be fetched. */
import { homedir } from "node:os"
import { resolve } from "node:path"

/** An image as this program family names them. */
export type Reference =
  /** A SIF file, another image file or a sandbox folder. */
  | { readonly _tag: "Local"; readonly path: string }
  /** An address such as `docker://python:3.11-slim`; `plain` when it is on this very machine, without TLS. */
  | { readonly _tag: "Remote"; readonly address: string; readonly plain: boolean }

const files = /^(?:\.{0,2}\/|~(?:\/|$)|\.{1,2}$)|\.(?:sif|sqsh|squashfs|img|simg)$/i

const schemes =
  /^(?:docker-archive|docker-daemon|oci-archive|oci|docker|library|oras|shub|https?|debootstrap|localimage|ipfs):/i

const loopback = /^[a-z]+:\/\/(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?\//i

/**
 * Reads an image's name. What begins with `/`, `./`, `../` or `~`, or ends as image files do, lies on this machine (relative to
 * `cwd`); what has a scheme is an address; all else is an image of Docker's kind: `python:3.11-slim` is `docker://python:3.11-slim`.
 */
export const read = (image: string, cwd: string): Reference => {
  const name = image.trim()
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(name) || schemes.test(name)) {
    return { _tag: "Remote", address: name, plain: loopback.test(name) }
  }
  if (files.test(name)) {
    return { _tag: "Local", path: resolve(cwd, name.startsWith("~") ? `${homedir()}${name.slice(1)}` : name) }
  }
  const address = `docker://${name}`
  return { _tag: "Remote", address, plain: loopback.test(address) }
}
