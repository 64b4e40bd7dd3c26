import { execFileSync, spawn } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Fiber } from "effect"
import { expect, it } from "vitest"
import * as Local from "../../../src/tools/browser/Local.ts"
import * as Sieve from "../../../src/tools/browser/Sieve.ts"
import * as Guard from "../../../src/tools/net/Guard.ts"
import { until } from "../../support/Command.ts"
import { inSandbox } from "../support.ts"
import { browse, build, chromium, describe, page, refOf, serve, session, using } from "./support.ts"

const running = (what: string): ReadonlyArray<string> =>
  execFileSync("ps", ["-eo", "stat=,args="], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.includes(what) && !line.startsWith("Z"))

describe("A hostile page", () => {
  it("opens no more tabs than it may, and the click that opens them counts", { timeout: 90_000 }, () =>
    browse(
      {
        "/": page("<button onclick='for (let i = 0; i < 12; i++) window.open(`/p`)'>Many</button>"),
        "/p": page("Popup")
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const { snapshot } = (yield* use("navigate", { url })).result
          const many = yield* use("click", { ref: refOf(snapshot, "Many") })
          expect(many.result.error ?? "none").toBe("none")
          const notes: Array<string> = [...(many.result.notes ?? [])]
          for (let looks = 0; looks < 15 && !notes.some((note) => /more than 8 tabs/.test(note)); looks++) {
            yield* Effect.sleep("1 second")
            notes.push(...((yield* use("snapshot")).result.notes ?? []))
          }
          expect(notes).toContainEqual(expect.stringMatching(/more than 8 tabs/))
          let tabs = 1
          while (tabs < 20 && (yield* use("back")).ok) tabs++
          expect(tabs).toBeGreaterThan(1)
          expect(tabs).toBeLessThanOrEqual(8)
        })
    )
  )

  it("is told as broken at once when it answers in another protocol", { timeout: 60_000 }, () =>
    browse(
      {
        "/": (_, response) => {
          response.socket?.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello")
        }
      },
      (use, { url }) =>
        Effect.gen(function* () {
          expect((yield* use("navigate", { url })).result.error).toMatch(/another protocol/)
        })
    )
  )

  it("gets a long text whole, and no key of it goes to the page after", { timeout: 90_000 }, () =>
    browse(
      {
        "/": page(
          "<div tabindex=0 role=button onbeforeinput='' contenteditable=false>Keys</div><script>addEventListener('keydown', () => {})</script>"
        ),
        "/field": page("<input autofocus aria-label=Field>")
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const { snapshot } = (yield* use("navigate", { url })).result
          const typed = yield* use("type", { ref: refOf(snapshot, "Keys"), text: "abcdefghij".repeat(10_000) })
          expect(typed.result.error ?? "none").toBe("none")
          yield* use("navigate", { url: `${url}/field` })
          yield* Effect.sleep("1 second")
          const field = yield* use("snapshot", { full: true })
          expect(field.result.snapshot).toMatch(/textbox "Field".*\]$/m)
        })
    )
  )

  it("reads nothing that another session copied", { timeout: 90_000 }, () =>
    inSandbox(
      Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* serve({ "/": page("<input aria-label=Field value=private><input aria-label=Other>") })
          const { tools } = yield* build()
          const use = using(tools)
          const copied = Effect.gen(function* () {
            const { snapshot } = (yield* use("navigate", { url })).result
            yield* use("click", { ref: refOf(snapshot, "Field") })
            yield* use("press", { key: "Control+A" })
            yield* use("press", { key: "Control+C" })
          })
          const pasted = Effect.gen(function* () {
            const { snapshot } = (yield* use("navigate", { url })).result
            yield* use("type", { ref: refOf(snapshot, "Field"), text: "" })
            yield* use("click", { ref: refOf(snapshot, "Other") })
            for (const key of ["Control+V", "ctrl + v", "Control+Shift+KeyV", "Shift+Insert", "ControlLeft+v"]) {
              expect((yield* use("press", { key })).result.error, key).toMatch(
                /clipboard .* use|clipboard .*browser_type/
              )
            }
            expect((yield* use("snapshot", { full: true })).result.snapshot).not.toContain("private")
          })
          yield* session(copied)
          yield* session(pasted)
        })
      )
    )
  )

  it("sends us nothing that is too large for us, and the run goes on", { timeout: 90_000 }, () =>
    browse(
      {
        "/": page("<script>document.title = 'x'.repeat(2e7)</script>Large"),
        "/fine": page("Fine")
      },
      (use, { url }) =>
        Effect.gen(function* () {
          expect((yield* use("navigate", { url })).result.error).toMatch(/does not respond/)
          expect((yield* use("navigate", { url: `${url}/fine` })).result.snapshot).toContain("Fine")
        })
    )
  )
})

describe("The sieve before Chromium", () => {
  it("lets messages through whole, leaves large ones out, and ends with the browser", { timeout: 30_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "sieve-test-"))
    const browser = join(folder, "browser")
    const lines = [
      'printf "first\\0" >&4',
      'head -c 3000000 /dev/zero | tr "\\0" x >&4',
      'printf "\\0" >&4',
      'printf "%s\\0" "$1" >&4',
      "cat <&3 >&4",
      "exit 7"
    ]
    writeFileSync(browser, `#!/bin/sh\n${lines.join("\n")}\n`, { mode: 0o700 })
    const child = spawn(Sieve.write(folder, browser, 1_000_000), ["an argument"], {
      stdio: ["ignore", "inherit", "inherit", "pipe", "pipe"]
    })
    const [, , , to, from] = child.stdio
    let told = ""
    if (from !== null && from !== undefined && "read" in from) from.on("data", (data) => (told += String(data)))
    if (to !== null && to !== undefined && "write" in to) to.end("answer\0")
    const code = await new Promise((resolve) => child.on("close", resolve))
    rmSync(folder, { recursive: true })
    expect(told).toBe("first\0an argument\0answer\0")
    expect(code).toBe(7)
  })
})

describe("A browser that does not come up", () => {
  it("does not hold up the end of the run, and leaves nothing", { timeout: 60_000 }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const folder = mkdtempSync(join(tmpdir(), "browser-test-"))
        const stubborn = join(folder, "chromium")
        writeFileSync(stubborn, `#!/bin/sh\ntrap "" TERM\nwhile :; do sleep 1; done\n`, { mode: 0o700 })
        const began = Date.now()
        yield* Effect.scoped(
          Effect.gen(function* () {
            const source = yield* Local.make(stubborn, Guard.make({ allowPrivate: true }))
            const opening = yield* Effect.fork(Effect.scoped(Effect.asVoid(source.open)))
            yield* Effect.promise(() => until(() => running(stubborn).length > 0, 20_000))
            yield* Fiber.interrupt(opening)
          })
        )
        expect(Date.now() - began).toBeLessThan(25_000)
        expect(running(stubborn)).toEqual([])
        rmSync(folder, { recursive: true })
        expect(chromium).not.toBe(stubborn)
      })
    )
  )
})
