/** Where a container engine that speaks Docker's API listens: as the environment, Docker's contexts or the usual sockets say. */
import { hash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { Either, Option, Schema } from "effect"

type Environment = Readonly<Record<string, string | undefined>>

/** An address such as `unix:///var/run/docker.sock`, and what named it. */
export interface Endpoint {
  readonly host: string
  readonly by: string
  /** Folder with ca.pem, cert.pem and key.pem for an address over TLS. */
  readonly certificates?: string | undefined
}

const Config = Schema.Struct({ currentContext: Schema.optional(Schema.String) })

const Meta = Schema.Struct({
  Endpoints: Schema.Struct({ docker: Schema.Struct({ Host: Schema.optional(Schema.String) }) })
})

/** A JSON file, decoded; undefined when it is missing or otherwise. */
export const readJson = <A, I>(path: string, schema: Schema.Schema<A, I>): A | undefined =>
  Either.try((): unknown => JSON.parse(readFileSync(path, "utf8"))).pipe(
    Either.getRight,
    Option.flatMap(Schema.decodeUnknownOption(schema)),
    Option.getOrUndefined
  )

/** The folder of Docker's own configuration. */
export const folder = (environment: Environment): string =>
  environment.DOCKER_CONFIG || join(environment.HOME || homedir(), ".docker")

const ofContext = (name: string, by: string, environment: Environment): Endpoint | undefined => {
  const id = hash("sha256", name, "hex")
  const host = readJson(join(folder(environment), "contexts", "meta", id, "meta.json"), Meta)?.Endpoints.docker.Host
  if (host === undefined || host === "") return undefined
  const certificates = join(folder(environment), "contexts", "tls", id, "docker")
  return { host, by, certificates: existsSync(certificates) ? certificates : undefined }
}

/** Sockets of engines that are commonly installed, Docker's before Podman's. */
export const sockets = (environment: Environment): ReadonlyArray<string> => {
  const home = environment.HOME || homedir()
  const runtime = environment.XDG_RUNTIME_DIR
  return [
    "/var/run/docker.sock",
    join(home, ".docker", "run", "docker.sock"),
    ...(runtime ? [join(runtime, "docker.sock")] : []),
    ...(runtime ? [join(runtime, "podman", "podman.sock")] : []),
    "/run/podman/podman.sock"
  ]
}

/** Everywhere to look for an engine, in order: one place where one is named, else each socket that is there. */
export const candidates = (environment: Environment): ReadonlyArray<Endpoint> => {
  const named = environment.DOCKER_HOST
  if (named) {
    return [{ host: named, by: "DOCKER_HOST", certificates: environment.DOCKER_CERT_PATH || undefined }]
  }
  const chosen = environment.DOCKER_CONTEXT
  const context = chosen || readJson(join(folder(environment), "config.json"), Config)?.currentContext || "default"
  if (context !== "default") {
    const by = `the Docker context ${context}`
    const found = ofContext(context, by, environment)
    if (found !== undefined) return [found]
    if (chosen) return [{ host: "", by }]
  }
  return sockets(environment)
    .filter((path) => existsSync(path))
    .map((path) => ({ host: `unix://${path}`, by: "its socket" }))
}
