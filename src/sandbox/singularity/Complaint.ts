/** What the container program complains of, as one line for people and one of our reasons. */
import { SandboxError } from "../Sandbox.ts"

const noise =
  /^(?:\s*$|INFO:|WARNING:|VERBOSE:|DEBUG:|Error for command|Usage:|Run '|ERROR:\s+container cleanup failed)/

/** Layers of context in front of the cause itself. */
const context =
  /^(?:(?:FATAL|ERROR):\s*|[Ww]hile (?:performing build|making image from oci registry|executing starter|checking container encryption|loading overlay images|setting image\/instance):\s*|conveyor failed to get:\s*|error fetching image to cache:\s*|failed to get checksum for \S+:\s*|container creation failed:\s*|failed to start instance:\s*)+/

/** The last complaint that tells something, on one line. */
export const line = (errors: string): string => {
  const plain = errors.replaceAll(/\u001b\[[0-9;]*m/g, "").replaceAll(/[\0-\x08\x0b-\x1f\x7f]/g, " ")
  const lines = plain.split("\n")
  const telling = lines.filter((one) => !noise.test(one))
  const fatal = telling.filter((one) => one.startsWith("FATAL:") && !one.includes("while running /"))
  const found = fatal[0] ?? telling.at(-1) ?? "no reason was given"
  return found.replace(context, "").replaceAll(/\s+/g, " ").trim().slice(0, 400)
}

const space = /no space left|disk quota|not enough space/i
const unfit =
  /format not recognized|SIF_MAGIC|deffile header|exec format error|unsupported media|architecture|does not match.*platform|no image satisfies|not a valid (?:sif|image)|bad magic|corrupt|manifest type/i
const network =
  /dial (?:tcp|udp)|no such host|connection re(?:fused|set)|i\/o timeout|timed? ?out|deadline exceeded|tls handshake|unexpected eof|: eof|network is unreachable|temporary failure|too ?many ?requests|toomanyrequests|status code:? (?:429|5\d\d)|50[0-4] |server misbehaving|unexpected status.* 5\d\d|took too long/i
const missing =
  /manifest[ _]unknown|name[ _]unknown|not found|unauthorized|authentication required|denied|forbidden|no such file|invalid reference|could not parse|not a docker|status code:? 4\d\d|name_invalid|invalid (?:repository|tag)|does not exist|not known|unsupported|no library endpoint|no default remote/i

/** Why an image could not be had. */
export const image = (name: string, errors: string): SandboxError => {
  const said = line(errors)
  if (space.test(errors)) {
    return new SandboxError({
      reason: "NoSpace",
      detail: `No space left on the disk to convert the image ${name}: free some, or let XDG_CACHE_HOME (the cache) or APPTAINER_TMPDIR name a folder elsewhere.`
    })
  }
  // What cannot be read as an image is taken for a recipe of one.
  const why = /SIF_MAGIC|deffile header/.test(said) ? "it is no image for this machine's architecture" : said
  const detail = `The image ${name} cannot be had: ${why}`
  if (unfit.test(said)) return new SandboxError({ reason: "ImageUnfit", detail })
  if (network.test(said)) return new SandboxError({ reason: "ImageUnreachable", detail })
  return new SandboxError({ reason: missing.test(said) ? "ImageMissing" : "StartFailed", detail })
}

/** Why no instance of an image could be started. */
export const start = (name: string, errors: string): SandboxError => {
  const said = line(errors)
  if (space.test(errors)) {
    return new SandboxError({
      reason: "NoSpace",
      detail: `No space left on the disk for a sandbox of ${name}: ${said}`
    })
  }
  if (/user namespace|user_namespaces|newuidmap|CLONE_NEWUSER/i.test(errors)) {
    return new SandboxError({
      reason: "Unavailable",
      detail: `Singularity sandboxes need user namespaces, which this machine refuses to this user (${said}): allow them (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces), or run as root.`
    })
  }
  // The program's own scripts want a shell.
  const shellless =
    /(?:\/bin\/sh\b|actions\/\w+|startscript\b).*(?:no such file|not found)|executable file not found/i.test(errors)
  if (shellless || unfit.test(said)) {
    return new SandboxError({
      reason: "ImageUnfit",
      detail: `No session can run in the image ${name}: ${shellless ? "it has no /bin/sh" : said}`
    })
  }
  return new SandboxError({ reason: "StartFailed", detail: `No instance of ${name} could be started: ${said}` })
}
