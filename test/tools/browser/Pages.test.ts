import { Effect } from "effect"
import { expect, it } from "vitest"
import { get } from "../support.ts"
import { browse, describe, page, refOf } from "./support.ts"

const pixel = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64"
)

describe("browser_navigate", () => {
  it("shows a page with handles, and tells a status that is an error", () =>
    browse(
      {
        "/": page(
          '<h1>Welcome</h1><p>Some words</p><a href="/next">Next</a><img src="data:image/png;base64,AAAA">',
          "Home"
        )
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const home = yield* use("navigate", { url: `${url}/` })
          expect(home.result).toMatchObject({ success: true, url: `${url}/`, title: "Home", status: 200 })
          expect(home.result.snapshot).toMatch(/^- heading "Welcome" \[level=1\]$/m)
          expect(home.result.snapshot).toMatch(/^- link "Next" \[ref=\w+\]:\n {2}- \/url: \/next$/m)
          expect(home.result.snapshot).not.toContain("box=")
          const lost = yield* use("navigate", { url: `${url}/lost` })
          expect(lost.result).toMatchObject({ success: true, status: 404 })
          expect(lost.result.snapshot).toContain("Nothing here")
        })
    ))

  it(
    "tells what is wrong with an address",
    () =>
      browse({ "/round": (_, response) => response.writeHead(302, { location: "/round" }).end() }, (use, { url }) =>
        Effect.gen(function* () {
          for (const [given, says] of [
            ["file:///etc/passwd", /file:.* not reached/],
            ["chrome://version", /chrome:.* not reached/],
            ["data:text/html,x", /data:.* not reached/],
            ["javascript:alert(1)", /javascript:.* not reached/],
            ["view-source:http://127.0.0.1/", /view-source:.* not reached/],
            ["", /no URL/],
            ["http://nowhere.invalid/", /no host nowhere\.invalid/],
            ["http://127.0.0.1:9/", /not use that port/],
            ["http://127.0.0.1:9999/", /127\.0\.0\.1:9999 cannot be reached: ECONNREFUSED/],
            ["https://127.0.0.1:9999/", /127\.0\.0\.1:9999 cannot be reached: ECONNREFUSED/],
            [url.replace("http", "https"), /encryption or certificate|ERR_SSL/],
            [`${url}/round`, /redirects too many times/]
          ] as const) {
            const { ok, result } = yield* use("navigate", { url: given })
            expect(result.error ?? "none", given).toMatch(says)
            expect(ok).toBe(false)
          }
          expect((yield* use("snapshot")).ok).toBe(true)
        })
      ),
    60_000
  )

  it("opens a good address right after one that could not be opened", { timeout: 60_000 }, () =>
    browse({ "/": page("<h1>Good</h1>", "Good") }, (use, { url, port }) =>
      Effect.gen(function* () {
        for (const bad of [`https://127.0.0.1:${port}/`, "http://127.0.0.1:2/", `https://127.0.0.1:${port}/x`]) {
          expect((yield* use("navigate", { url: bad })).ok).toBe(false)
          expect((yield* use("navigate", { url })).result).toMatchObject({ success: true, title: "Good" })
        }
      })
    )
  )

  it("shows what there is of a page that never ends, and says that it is still loading", { timeout: 60_000 }, () =>
    browse(
      {
        "/": (_, response) => {
          response.writeHead(200, { "content-type": "text/html" }).write("<h1>The beginning</h1>")
        },
        "/slow": (_, response) => {
          setTimeout(() => response.end("<h1>Late</h1>"), 2000)
        },
        "/never": () => {}
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const endless = yield* use("navigate", { url })
          expect(endless.result.snapshot).toContain("The beginning")
          expect(endless.result.notes).toEqual([expect.stringMatching(/still loading/)])
          expect((yield* use("navigate", { url: `${url}/slow` })).result.snapshot).toContain("Late")
          const never = yield* use("navigate", { url: `${url}/never` })
          expect(never.result.error).toMatch(/no answer within 20 seconds/)
          expect((yield* use("navigate", { url: `${url}/slow` })).result.snapshot).toContain("Late")
        })
    )
  )

  it("keeps a small file in the sandbox and cancels a large one", { timeout: 60_000 }, () =>
    browse(
      {
        "/": page('<a href="/small">Small</a><a href="/large">Large</a>'),
        "/small": (_, response) =>
          response.writeHead(200, { "content-disposition": "attachment; filename=../a b.txt" }).end("some words"),
        "/large": (_, response) => {
          response.writeHead(200, { "content-disposition": "attachment; filename=large.bin" })
          const timer = setInterval(() => response.write(Buffer.alloc(4_000_000)), 100)
          response.on("close", () => clearInterval(timer))
        }
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const home = yield* use("navigate", { url })
          const small = yield* use("click", { ref: refOf(home.result.snapshot, "Small") })
          expect(small.result.downloads).toMatchObject([{ url: `${url}/small`, bytes: 10 }])
          expect(yield* Effect.orDie(get(small.result.downloads[0].path))).toBe("some words")
          const large = yield* use("click", { ref: refOf(home.result.snapshot, "Large") })
          expect(large.result.downloads).toMatchObject([{ name: "large.bin", error: expect.stringMatching(/10 MB/) }])
          const direct = yield* use("navigate", { url: `${url}/small` })
          expect(direct.result).toMatchObject({ success: true, url: `${url}/`, downloads: [{ bytes: 10 }] })
        })
    )
  )

  it("shows a page of 50,000 elements and a megabyte of text within its time", { timeout: 90_000 }, () =>
    browse(
      {
        "/many": page(Array.from({ length: 16_000 }, (_, at) => `<div><p>n ${at} <b>x</b></p></div>`).join("")),
        "/long": page(`<p>${"word ".repeat(200_000)}</p><button>Last</button>`)
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const many = yield* use("navigate", { url: `${url}/many` })
          expect(many.result.snapshot).toContain("n 0")
          expect(many.result.snapshot).toMatch(
            /\d+ lines below \(browser_scroll down, or browser_snapshot with full=true/
          )
          expect(many.text.length).toBeLessThan(10_000)
          const full = yield* use("snapshot", { full: true })
          expect(full.text.length).toBeGreaterThan(30_000)
          expect(Buffer.byteLength(full.text)).toBeLessThan(50_000)
          const long = yield* use("navigate", { url: `${url}/long` })
          expect(long.result.snapshot).toMatch(/more characters\)\n- button "Last"/)
        })
    )
  )
})

describe("browser_scroll", () => {
  it(
    "moves on through a page that grows, says how far it is, and a long page is shown from there",
    { timeout: 60_000 },
    () =>
      browse(
        {
          "/": page(`<div id=list></div><script>
          let n = 0
          const more = () => { for (let i = 0; i < 200; i++) { const p = document.createElement("button"); p.textContent = "Item " + n++; p.style.display = "block"; list.append(p) } }
          more()
          addEventListener("scroll", () => { if (innerHeight + scrollY > document.body.scrollHeight - 10000) more() })
        </script>`),
          "/inner": page(
            `<style>html, body { margin: 0; overflow: hidden } </style><div style="height: 500px; overflow: auto"><div style="height: 5000px">Tall</div></div>`
          ),
          "/short": page("Short")
        },
        (use, { url }) =>
          Effect.gen(function* () {
            const first = yield* use("navigate", { url })
            expect(first.result.snapshot).toContain('"Item 0"')
            yield* use("scroll", { direction: "down" })
            const third = yield* use("scroll", { direction: "down" })
            expect(third.result.position).toMatch(/^1296 of \d+ pixels down$/)
            expect(third.result.snapshot).not.toContain('"Item 0"')
            expect(third.result.snapshot).toContain("lines above (browser_scroll up)")
            expect((yield* use("snapshot", { full: true })).text).toContain("Item 399")
            yield* use("scroll", { direction: "up" })
            expect((yield* use("scroll", { direction: "up" })).result.snapshot).toContain('"Item 0"')
            expect((yield* use("scroll", { direction: "up" })).result.position).toBe("at the top already")
            yield* use("navigate", { url: `${url}/inner` })
            expect((yield* use("scroll", { direction: "down" })).result.position).toBe("450 of 4500 pixels down")
            yield* use("navigate", { url: `${url}/short` })
            expect((yield* use("scroll", { direction: "down" })).result.position).toBe("at the end already")
          })
      )
  )
})

describe("browser_get_images", () => {
  it("lists images with their size and text, those within frames too, and no data in full", () =>
    browse(
      {
        "/": page(
          `<img src="/a.png" alt="An image" width=40 height=30><iframe src="/frame"></iframe><img alt=d src="data:image/png;base64,${"A".repeat(5000)}">`
        ),
        "/frame": page('<img src="/b.png" alt="Within">'),
        "/a.png": (_, response) => response.end(pixel)
      },
      (use, { url }) =>
        Effect.gen(function* () {
          yield* use("navigate", { url })
          const { result, text } = yield* use("get_images")
          expect(result).toMatchObject({ success: true, total: 3 })
          expect(result.images).toContainEqual({ src: `${url}/a.png`, alt: "An image", width: 1, height: 1 })
          expect(result.images).toContainEqual(expect.objectContaining({ src: `${url}/b.png`, alt: "Within" }))
          expect(text.length).toBeLessThan(2000)
        })
    ))
})
