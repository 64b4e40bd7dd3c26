import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { expect, it } from "vitest"
import * as Catalogue from "../../../src/tools/Catalogue.ts"
import * as Setting from "../../../src/tools/Setting.ts"
import * as Variables from "../../../src/tools/Variables.ts"
import { until } from "../../support/Command.ts"
import { inSandbox } from "../support.ts"
import { browse, build, chromium, describe, page, serve, session, using } from "./support.ts"

/** Processes below this one that are a Chromium, the dead ones left out; those of the browser itself first. */
const browsers = (): ReadonlyArray<{ readonly pid: number; readonly line: string }> =>
  execFileSync("ps", ["-eo", "pid=,ppid=,stat=,args="], { encoding: "utf8" })
    .split("\n")
    .flatMap((each) => {
      const [, pid, , stat, line] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(each) ?? []
      return line?.includes(`batch-runner-${process.pid}-`) && !line.includes("sieve.cjs") && !stat?.startsWith("Z")
        ? [{ pid: Number(pid), line }]
        : []
    })

const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`batch-runner-${process.pid}-`))

const cookies = {
  "/set": page("<script>document.cookie = 'who=' + location.search.slice(1)</script>Set"),
  "/get": page("<p id=out></p><script>out.textContent = 'cookie: ' + document.cookie</script>")
}

describe("Sessions", () => {
  it("share a browser and nothing else, and leave nothing behind", { timeout: 60_000 }, () =>
    inSandbox(
      Effect.gen(function* () {
        const before = folders()
        const scope = yield* Scope.make()
        const { url } = yield* Scope.extend(serve(cookies), scope)
        const { tools } = yield* Scope.extend(build(), scope)
        expect(browsers()).toEqual([])
        const use = using(tools)
        const one = (name: string) =>
          session(
            Effect.gen(function* () {
              yield* use("navigate", { url: `${url}/set?${name}` })
              return (yield* use("navigate", { url: `${url}/get` })).result.snapshot
            })
          )
        const [a, b] = yield* Effect.all([one("a"), one("b")], { concurrency: 2 })
        expect([a, b]).toEqual([expect.stringContaining("cookie: who=a"), expect.stringContaining("cookie: who=b")])
        const blank = yield* session(
          Effect.map(use("navigate", { url: `${url}/get` }), ({ result }) => result.snapshot)
        )
        expect(blank).not.toContain("who=")
        expect(
          browsers().filter(({ line }) => line.includes("--remote-debugging-pipe") && !line.includes("--type="))
        ).toHaveLength(1)
        yield* Scope.close(scope, Exit.void)
        yield* Effect.promise(() => until(() => browsers().length === 0, 5000))
        expect(folders()).toEqual(before)
      })
    )
  )

  it("wait for a place when there are as many as may be, and browser_close gives one back", { timeout: 60_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* serve({ "/": page("Here") })
          const { tools } = yield* build({ maxBrowsers: 1 })
          const use = using(tools)
          const [has, may] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
          const first = yield* Effect.fork(
            session(
              Effect.gen(function* () {
                yield* use("navigate", { url })
                yield* Deferred.succeed(has, undefined)
                yield* Deferred.await(may)
                expect((yield* use("close")).result).toMatchObject({ success: true, note: "closed" })
                expect((yield* use("snapshot")).result.error).toMatch(/no page is open/)
                return (yield* use("navigate", { url })).result.snapshot
              })
            )
          )
          yield* Deferred.await(has)
          // A session that needs a page does not wait to hear that it has none.
          expect((yield* session(use("snapshot"))).result.error).toMatch(/no page is open/)
          const given = yield* Effect.fork(session(use("navigate", { url })))
          const second = yield* Effect.fork(session(use("navigate", { url })))
          yield* Effect.sleep("700 millis")
          expect(second.unsafePoll()).toBeNull()
          yield* Fiber.interrupt(given)
          yield* Deferred.succeed(may, undefined)
          expect((yield* Fiber.join(second)).result.snapshot).toContain("Here")
          expect(yield* Fiber.join(first)).toContain("Here")
          expect((yield* session(use("close"))).result).toMatchObject({ note: "no page was open" })
        })
      )
    )
  )

  it("go on after a crash of the page and of the browser, and are told of it", { timeout: 90_000 }, () =>
    browse({ "/": page("Here") }, (use, { url }) =>
      Effect.gen(function* () {
        yield* use("navigate", { url })
        const renderers = () => browsers().filter(({ line }) => line.includes("--type=renderer"))
        for (const { pid } of renderers()) process.kill(pid, "SIGKILL")
        yield* Effect.sleep("500 millis")
        expect((yield* use("snapshot")).result.error).toMatch(/crashed.*browser_navigate/)
        expect((yield* use("navigate", { url })).result.snapshot).toContain("Here")
        const [main] = browsers().filter(
          ({ line }) => line.includes("--remote-debugging-pipe") && !line.includes("--type=")
        )
        process.kill(main?.pid ?? 0, "SIGKILL")
        yield* Effect.sleep("500 millis")
        expect((yield* use("snapshot")).result.error).toMatch(/was started anew.*browser_navigate/)
        const again = yield* use("navigate", { url })
        expect(again.result.snapshot).toContain("Here")
        expect((yield* use("snapshot")).ok).toBe(true)
      })
    )
  )

  it("are not kept by a browser that starts no more, and the folder of a killed run goes with the next", () =>
    inSandbox(
      Effect.gen(function* () {
        const dead = join(tmpdir(), `batch-runner-999999999-1-${readlink()}-0`)
        execFileSync("mkdir", ["-p", join(dead, "profile")])
        const folder = mkdtempSync(join(tmpdir(), "browser-test-"))
        const broken = join(folder, "chromium")
        execFileSync("/bin/sh", ["-c", `printf '#!/bin/sh\\nexit 3\\n' > '${broken}'; chmod +x '${broken}'`])
        const before = folders()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { tools } = yield* build({ variables: Variables.from({ CHROMIUM_PATH: broken }) })
            const { result } = yield* using(tools)("navigate", { url: "http://127.0.0.1:1/" })
            expect(result.error).toMatch(/^the browser could not be started/)
          })
        )
        expect(existsSync(dead)).toBe(false)
        expect(folders()).toEqual(before)
        rmSync(folder, { recursive: true })
      })
    ))
})

const readlink = () => /\d+/.exec(execFileSync("readlink", ["/proc/self/ns/pid"], { encoding: "utf8" }))?.[0] ?? "0"

describe("The toolset", () => {
  const lacksOf = (variables: Readonly<Record<string, string>>) =>
    Effect.map(build({ variables: Variables.from(variables) }), ({ lacks, missing }) => ({ lacks, missing }))

  it("says what it lacks, and lacks eyes alone without a model that sees", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          expect((yield* lacksOf({ CHROMIUM_PATH: "/nowhere/chromium" })).lacks).toBe(
            "CHROMIUM_PATH names /nowhere/chromium, which is no executable file"
          )
          expect((yield* lacksOf({ CHROMIUM_PATH: "/etc" })).lacks).toContain("no executable file")
          expect((yield* lacksOf({ BROWSER_CDP_URL: "nonsense" })).lacks).toMatch(/BROWSER_CDP_URL is no ws/)
          expect(yield* lacksOf({ CHROMIUM_PATH: chromium })).toMatchObject({
            lacks: null,
            missing: [{ name: "browser_vision" }]
          })
          const path = process.env.PATH
          process.env.PATH = "/nowhere"
          const none = yield* Effect.ensuring(
            lacksOf({}),
            Effect.sync(() => {
              process.env.PATH = path
            })
          )
          if (
            readdirSync("/usr/bin").length > 0 &&
            !existsSync(join(process.env.HOME ?? "/", ".cache/ms-playwright"))
          ) {
            expect(none.lacks).toMatch(/^no Chromium: install it or set CHROMIUM_PATH/)
          }
          const all = yield* Catalogue.catalogue(Setting.make({ wanted: (name) => name === "browser" }))
          expect(all.find(({ name }) => name === "browser")?.toolNames).toHaveLength(10)
        })
      )
    ))
})
