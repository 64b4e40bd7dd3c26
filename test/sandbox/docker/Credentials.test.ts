/** The user's own login goes to the registry that it is for, wherever Docker keeps it, and nowhere else. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { delimiter, join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it, onTestFinished, vi } from "vitest"
import * as Credentials from "../../../src/sandbox/docker/Credentials.ts"
import { normalize } from "../../../src/sandbox/docker/Images.ts"

const hub = "https://index.docker.io/v1/"

const basic = (pair: string) => Buffer.from(pair).toString("base64")

/** A folder of Docker's configuration, with little helper programs beside it. */
const folder = (config: unknown, helpers: Readonly<Record<string, string>> = {}) => {
  const root = mkdtempSync(join(tmpdir(), "credentials-"))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  writeFileSync(join(root, "config.json"), typeof config === "string" ? config : JSON.stringify(config))
  const bin = join(root, "bin")
  mkdirSync(bin)
  for (const [name, script] of Object.entries(helpers)) {
    const path = join(bin, `docker-credential-${name}`)
    writeFileSync(path, `#!/bin/sh\n${script}\n`)
    chmodSync(path, 0o755)
  }
  vi.stubEnv("PATH", [bin, process.env.PATH].join(delimiter))
  onTestFinished(() => {
    vi.unstubAllEnvs()
  })
  const find = async (image: string) => {
    const login = await Effect.runPromise(Credentials.find(image, { DOCKER_CONFIG: root }))
    return login === undefined ? undefined : Credentials.header(login)
  }
  return { root, find }
}

describe("An image's registry", () => {
  it.each([
    ["busybox", hub],
    ["busybox:1.36", hub],
    ["library/busybox", hub],
    ["me/a/b:1", hub],
    ["docker.io/library/busybox", hub],
    ["index.docker.io/me/x", hub],
    ["ghcr.io/me/x:1", "ghcr.io"],
    ["localhost/x", "localhost"],
    ["localhost:5000/a/b:1", "localhost:5000"],
    ["127.0.0.1:5000/x@sha256:00", "127.0.0.1:5000"],
    ["host:443/x", "host:443"],
    ["python:3.11-slim", hub],
    ["", hub]
  ])("of %j is %s.", (image, registry) => {
    expect(Credentials.registryOf(image)).toBe(registry)
  })
})

describe("An image's name", () => {
  it.each([
    ["busybox", "busybox:latest"],
    ["busybox:1", "busybox:1"],
    [" busybox:1\n", "busybox:1"],
    ["docker://python:3.11-slim", "python:3.11-slim"],
    ["docker://me/x", "me/x:latest"],
    ["localhost:5000/x", "localhost:5000/x:latest"],
    ["localhost:5000/x:1", "localhost:5000/x:1"],
    ["x@sha256:00112233445566778899aabbccddeeff", "x@sha256:00112233445566778899aabbccddeeff"],
    [
      "localhost:5000/x:1@sha256:00112233445566778899aabbccddeeff",
      "localhost:5000/x:1@sha256:00112233445566778899aabbccddeeff"
    ]
  ])("%j is asked for as %s, never as all tags.", (image, asked) => {
    expect(normalize(image)).toBe(asked)
  })
})

describe("A login in the configuration", () => {
  it("is a name and a password in one word, or in two.", async () => {
    const { find } = folder({
      auths: {
        "one.io": { auth: basic("me:pa:ss wörd") },
        "two.io": { username: "me", password: "secret" },
        "three.io": { auth: `${basic("me:padded\0\0")}` },
        "none.io": { auth: "" },
        "empty.io": {}
      }
    })
    expect(await find("one.io/x")).toEqual({ serveraddress: "one.io", username: "me", password: "pa:ss wörd" })
    expect(await find("two.io/x:1")).toEqual({ serveraddress: "two.io", username: "me", password: "secret" })
    expect(await find("three.io/x")).toMatchObject({ password: "padded" })
    for (const image of ["none.io/x", "empty.io/x", "other.io/x", "busybox"]) expect(await find(image)).toBeUndefined()
  })

  it("may be a token instead.", async () => {
    const { find } = folder({ auths: { "a.io": { auth: basic("me:"), identitytoken: "t0ken" } } })
    expect(await find("a.io/x")).toEqual({
      serveraddress: "a.io",
      username: "me",
      password: "",
      identitytoken: "t0ken"
    })
  })

  it("may be filed under any of the registry's spellings.", async () => {
    for (const name of ["a.io", "https://a.io", "http://a.io", "https://a.io/v1/", "https://a.io/v2/"]) {
      const { find } = folder({ auths: { [name]: { auth: basic("me:secret") } } })
      expect(await find("a.io/x"), name).toEqual({ serveraddress: "a.io", username: "me", password: "secret" })
    }
    for (const name of [hub, "docker.io", "index.docker.io", "https://index.docker.io"]) {
      const { find } = folder({ auths: { [name]: { auth: basic("me:secret") } } })
      expect(await find("python:3"), name).toEqual({ serveraddress: hub, username: "me", password: "secret" })
      expect(await find("a.io/python:3"), name).toBeUndefined()
    }
  })

  it("is none where the configuration is none.", async () => {
    for (const config of ["", "not json", "[]", '{"auths":[]}', "{}"]) {
      expect(await folder(config).find("a.io/x"), config).toBeUndefined()
    }
    expect(await Effect.runPromise(Credentials.find("a.io/x", { DOCKER_CONFIG: "/nowhere" }))).toBeUndefined()
  })

  it("shows in no text that is made of it.", async () => {
    const { root } = folder({ auths: { "a.io": { auth: basic("me:s3cr3t"), identitytoken: "t0ken" } } })
    const login = await Effect.runPromise(Credentials.find("a.io/x", { DOCKER_CONFIG: root }))
    expect(login).toBeDefined()
    expect(JSON.stringify(login) + String(login?.password)).not.toMatch(/s3cr3t|t0ken/)
  })
})

describe("A credential helper", () => {
  const says = (username: string, secret: string) =>
    `read registry; echo "{\\"ServerURL\\":\\"$registry\\",\\"Username\\":\\"${username} $registry $1\\",\\"Secret\\":\\"${secret}\\"}"`

  it("is asked for the registry, by its name on standard input.", async () => {
    const { find } = folder({ credsStore: "test-a" }, { "test-a": says("me", "secret") })
    expect(await find("a.io/x")).toEqual({ serveraddress: "a.io", username: "me a.io get", password: "secret" })
    expect(await find("busybox")).toEqual({ serveraddress: hub, username: `me ${hub} get`, password: "secret" })
  })

  it("of one registry comes before the store of all.", async () => {
    const { find } = folder(
      { credsStore: "test-a", credHelpers: { "b.io": "test-b" } },
      { "test-a": says("all", "x"), "test-b": says("one", "y") }
    )
    expect(await find("a.io/x")).toMatchObject({ username: "all a.io get", password: "x" })
    expect(await find("b.io/x")).toMatchObject({ username: "one b.io get", password: "y" })
  })

  it("may give a token.", async () => {
    const token = `cat >/dev/null; echo '{"ServerURL":"","Username":"<token>","Secret":"t0ken"}'`
    const { find } = folder({ credsStore: "test-a" }, { "test-a": token })
    expect(await find("a.io/x")).toEqual({ serveraddress: "a.io", username: "", password: "", identitytoken: "t0ken" })
  })

  it.each([
    ["knows nothing", "echo 'credentials not found in native keychain'; exit 1"],
    ["says nonsense", "echo '{'"],
    ["says nothing", "exit 0"],
    ["says it on standard error", `echo '{"Username":"me","Secret":"x"}' >&2`],
    ["does not read", `exec <&-; exit 3`]
  ])("that %s leaves what stands in the configuration.", async (_, script) => {
    const config = { credsStore: "test-a", auths: { "a.io": { auth: basic("me:filed") } } }
    const { find } = folder(config, { "test-a": script })
    expect(await find("a.io/x")).toMatchObject({ username: "me", password: "filed" })
    expect(await find("b.io/x")).toBeUndefined()
  })

  it("that is not installed is no reason to fail, and no name of one runs something else.", async () => {
    expect(await folder({ credsStore: "nowhere-at-all" }).find("a.io/x")).toBeUndefined()
    const { find, root } = folder({ credsStore: "../../x; touch made", credHelpers: {} })
    expect(await find("a.io/x")).toBeUndefined()
    expect(existsSync(join(root, "made"))).toBe(false)
  })

  it("gets nothing but the registry's name.", async () => {
    const { find, root } = folder({ credsStore: "test-a" }, { "test-a": `cat > "$(dirname "$0")/../asked"` })
    await find("a.io/me/private:tag")
    expect(readFileSync(join(root, "asked"), "utf8")).toBe("a.io")
  })
})
