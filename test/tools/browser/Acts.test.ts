import { Effect, Layer } from "effect"
import { expect, it } from "vitest"
import { type Ask, Model, noUsage } from "../../../src/model/Model.ts"
import { browse, describe, page, refOf } from "./support.ts"

const form = page(
  `<h1>Form</h1><form action="/done"><label>Name <input name=name value="old"></label><label>Colour <select name=colour><option>Red<option value=g>Green</select></label>
   <label><input type=checkbox name=agree> Agree</label><label>Note <textarea name=note></textarea></label><label>File <input type=file></label>
   <input readonly aria-label="Fixed" value=x><button>Send</button><button disabled>Not yet</button></form><div contenteditable role=textbox aria-label="Editor">old</div>`,
  "Form"
)

describe("browser_type and browser_click", () => {
  it("fill in a form and send it, and tell what changed", { timeout: 60_000 }, () =>
    browse(
      {
        "/": form,
        "/done": (request, response) =>
          page(`<p>Got ${request.url?.replaceAll("&", " ")}</p>`, "Done")(request, response)
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const { snapshot } = (yield* use("navigate", { url })).result
          const ref = (text: string) => refOf(snapshot, text)
          const typed = yield* use("type", { ref: `@${ref('"Name"')}`, text: "Ann" })
          expect(typed.result).toMatchObject({
            success: true,
            title: "Form",
            changed: expect.stringMatching(/"Name".*Ann/)
          })
          expect(typed.result.snapshot).toBeUndefined()
          yield* use("type", { ref: `[ref=${ref('"Note"')}]`, text: "two\nlines\n" })
          yield* use("type", { ref: `ref=${ref('"Colour"')}`, text: "green" })
          yield* use("type", { ref: ref('"Editor"'), text: "new" })
          expect((yield* use("click", { ref: ref('"Agree"') })).result.changed).toContain("[checked]")
          for (const [name, at, says] of [
            ["type", '"Agree"', /is a checkbox and takes no text; use browser_click/],
            ["type", '"File"', /files cannot be uploaded/],
            ["type", '"Fixed"', /takes no text: it is read-only/],
            ["click", '"Not yet"', /could not be clicked: it is disabled/],
            ["type", '"Colour"', /has no option "text"; it has \["Red","Green"\]/]
          ] as const) {
            const bad = yield* use(name, { ref: ref(at), text: "text" })
            expect(bad.result.error ?? "none").toMatch(says)
          }
          const heading = refOf((yield* use("snapshot", { full: true })).result.snapshot, "heading")
          expect((yield* use("type", { ref: heading, text: "text" })).result.error).toMatch(/is no field of text/)
          expect((yield* use("click", { ref: ref('"File"') })).result.notes).toEqual([
            expect.stringMatching(/not supported/)
          ])
          const sent = yield* use("click", { ref: ref('"Send"') })
          expect(sent.result).toMatchObject({ title: "Done", snapshot: expect.stringContaining("Got") })
          expect(sent.result.snapshot).toContain("name=Ann colour=g agree=on note=two%0D%0Alines%0D%0A")
          expect((yield* use("back")).result).toMatchObject({ title: "Form", url: `${url}/` })
          const { snapshot: again } = (yield* use("snapshot")).result
          const entered = yield* use("type", { ref: refOf(again, '"Name"'), text: "Bob\n" })
          expect(entered.result.snapshot).toContain("name=Bob")
        })
    )
  )

  it("answer a stale or unknown ref with what to do", () =>
    browse(
      {
        "/": page(
          '<button onclick="this.remove(); document.body.append(Object.assign(document.createElement(`p`), {textContent: `gone`}))">Vanish</button>'
        ),
        "/other": page("Other")
      },
      (use, { url }) =>
        Effect.gen(function* () {
          expect((yield* use("click", { ref: "e1" })).result.error).toMatch(
            /no page is open: open one with browser_nav/
          )
          const ref = refOf((yield* use("navigate", { url })).result.snapshot, "Vanish")
          expect((yield* use("click", { ref })).result.changed).toContain("gone")
          expect((yield* use("click", { ref })).result.error).toMatch(/no element e\d+ .* take a new browser_snapshot/)
          for (const odd of ["e999", "f7e2"]) {
            expect((yield* use("click", { ref: odd })).result.error).toMatch(/take a new browser_snapshot/)
          }
          expect((yield* use("click", { ref: "#button" })).result.error).toMatch(/expected a handle.*"#button"/)
        })
    ))

  it(
    "reach into frames and shadow trees, and say what lies over an element",
    () =>
      browse(
        {
          "/": page(`<iframe src="/frame"></iframe><div id=host></div>
          <div style="position: relative"><button>Covered</button><div id=cover style="position: absolute; inset: 0; background: red">Cookies</div></div>
          <script>host.attachShadow({mode: "open"}).innerHTML = "<button onclick='this.textContent = \`shadowed\`'>Shade</button>"</script>`),
          "/frame": page("<button onclick='this.textContent = `framed`'>Frame</button>")
        },
        (use, { url }) =>
          Effect.gen(function* () {
            const { snapshot } = (yield* use("navigate", { url })).result
            expect(refOf(snapshot, '"Frame"')).toMatch(/^f\d+e\d+$/)
            expect((yield* use("click", { ref: refOf(snapshot, '"Frame"') })).result.changed).toContain("framed")
            expect((yield* use("click", { ref: refOf(snapshot, '"Shade"') })).result.changed).toContain("shadowed")
            const covered = yield* use("click", { ref: refOf(snapshot, '"Covered"') })
            expect(covered.result.error).toMatch(/<div id="cover".*> lies over it/)
          })
      ),
    60_000
  )

  it("tell of dialogs, which are answered by themselves", () =>
    browse(
      {
        "/": page(
          `<button onclick="alert('hey'); this.textContent = confirm('sure?') + ' ' + prompt('name?', 'Ann')">Ask</button>
           <script>onbeforeunload = (event) => { event.preventDefault(); return "stay" }</script>`
        ),
        "/next": page("Next")
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const { snapshot } = (yield* use("navigate", { url })).result
          const asked = yield* use("click", { ref: refOf(snapshot, "Ask") })
          expect(asked.result.dialogs).toEqual([
            { type: "alert", message: "hey", answer: "accepted" },
            { type: "confirm", message: "sure?", answer: "accepted" },
            { type: "prompt", message: "name?", answer: "Ann" }
          ])
          expect(asked.result.changed).toContain("true Ann")
          const left = yield* use("navigate", { url: `${url}/next` })
          expect(left.result).toMatchObject({ success: true, url: `${url}/next` })
        })
    ))

  it(
    "follow a new tab, from which browser_back returns",
    () =>
      browse(
        {
          "/": page(`<a href="/tab" target=_blank rel=opener>Tab</a>`, "Opener"),
          "/tab": page("<p>In the tab</p><button onclick='window.close()'>Shut</button>", "Tab")
        },
        (use, { url }) =>
          Effect.gen(function* () {
            const { snapshot } = (yield* use("navigate", { url })).result
            const tab = yield* use("click", { ref: refOf(snapshot, '"Tab"') })
            expect(tab.result).toMatchObject({ title: "Tab", notes: [expect.stringMatching(/new tab/)] })
            const home = yield* use("back")
            expect(home.result).toMatchObject({ title: "Opener", notes: [expect.stringMatching(/tab was closed/)] })
            expect((yield* use("back")).result.error).toBe("there is no page before this one")
            expect((yield* use("snapshot")).result.title).toBe("Opener")
            const again = yield* use("click", { ref: refOf((yield* use("snapshot")).result.snapshot, '"Tab"') })
            const shut = yield* use("click", { ref: refOf(again.result.snapshot, "Shut") })
            expect(shut.result).toMatchObject({ title: "Opener", notes: [expect.stringMatching(/closed itself/)] })
          })
      ),
    60_000
  )

  it("leave the session usable after a page that hangs", { timeout: 90_000 }, () =>
    browse({ "/": page("<button onclick='while (true);'>Hang</button>"), "/fine": page("Fine") }, (use, { url }) =>
      Effect.gen(function* () {
        const { snapshot } = (yield* use("navigate", { url })).result
        const hung = yield* use("click", { ref: refOf(snapshot, "Hang") })
        expect(hung.result.error).toMatch(/does not respond any more; browser_navigate opens a fresh one/)
        expect((yield* use("snapshot")).result.error).toMatch(/hangs.*browser_navigate/)
        expect((yield* use("navigate", { url: `${url}/fine` })).result.snapshot).toContain("Fine")
      })
    )
  )
})

describe("browser_press", () => {
  it("presses keys by the names that models give them", () =>
    browse(
      {
        "/": page(
          "<input aria-label=Field autofocus onkeydown='if (event.key === `Enter`) document.title = `entered`'>"
        )
      },
      (use, { url }) =>
        Effect.gen(function* () {
          const { snapshot } = (yield* use("navigate", { url })).result
          yield* use("type", { ref: refOf(snapshot, "Field"), text: "abc" })
          yield* use("press", { key: "ctrl+A" })
          expect((yield* use("press", { key: "x" })).result.changed).toMatch(/"Field".*x/)
          expect((yield* use("press", { key: "return" })).result.title).toBe("entered")
          expect((yield* use("press", { key: "Nonsense" })).result.error).toMatch(/^key: .*"Nonsense"; known are names/)
        })
    ))
})

describe("browser_vision", () => {
  it("asks a model that sees about a picture of the window", () => {
    const asked: Array<Ask> = []
    const model = Layer.succeed(Model, {
      complete: (ask) => {
        asked.push(ask)
        return Effect.succeed({
          content: "a red page",
          reasoning: "",
          toolCalls: [],
          finishReason: "stop" as const,
          usage: noUsage,
          echo: {}
        })
      }
    })
    return browse(
      { "/": page("<body style='background: red'>") },
      (use, { url }) =>
        Effect.gen(function* () {
          expect((yield* use("vision", { question: "What?" })).result.error).toMatch(/no page is open/)
          yield* use("navigate", { url })
          const { result } = yield* Effect.provide(use("vision", { question: "What colour?" }), model)
          expect(result).toEqual({ success: true, analysis: "a red page" })
          expect(asked).toHaveLength(1)
          expect(asked[0]).toMatchObject({
            aside: { tool: "browser_vision", model: "seeing-model" },
            messages: [
              { role: "system" },
              {
                role: "user",
                content: "What colour?",
                images: [expect.stringMatching(/^data:image\/jpeg;base64,\/9j\//)]
              }
            ]
          })
        }),
      { visionModel: "seeing-model" }
    )
  })
})
