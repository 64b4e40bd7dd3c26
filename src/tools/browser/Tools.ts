/** The definitions of the tools browser_*, over the windows of the sessions. */
import { Effect, Either, Schema } from "effect"
import * as Arguments from "../Arguments.ts"
import type { Guard } from "../net/Guard.ts"
import * as Tool from "../Tool.ts"
import type { Built, Lack } from "../Toolset.ts"
import type { Eyes } from "../vision/Eyes.ts"
import * as Acts from "./Acts.ts"
import * as Element from "./Element.ts"
import type { Sessions } from "./Sessions.ts"
import * as Visit from "./Visit.ts"

const none = Schema.Struct({})

/** The tools, of which browser_vision may lack eyes. */
export const make = (sessions: Sessions, guard: Guard, seeing: Either.Either<Eyes, string>): Built => [
  Tool.make({
    name: "browser_navigate",
    description:
      "Open a web page in the browser. Gives {url, title, status, snapshot}: snapshot is the page's accessibility tree, in " +
      "which [ref=e5] is the handle of an element for browser_click and browser_type.",
    parameters: Schema.Struct({ url: Arguments.text("Address of the page, http or https") }),
    run: Effect.fn("browser_navigate.run")(function* ({ url }) {
      const given = yield* Acts.permitted(guard, url)
      return yield* sessions.enter((window) =>
        Effect.gen(function* () {
          const status = yield* Visit.open(window, given)
          yield* Visit.settle(window)
          return { ...(yield* Visit.look(window, "compact")), ...(status !== undefined && { status }) }
        })
      )
    })
  }),
  Tool.make({
    name: "browser_snapshot",
    description:
      "Look at the page that is open. Without full: what can be acted on, headings and texts near them, from where the page " +
      "is scrolled to. With full=true: the whole tree, as far as a result can hold it.",
    parameters: Schema.Struct({ full: Schema.optional(Arguments.flag("true: the whole tree; false by default")) }),
    run: Effect.fn("browser_snapshot.run")(({ full }) =>
      sessions.within((window) => Visit.look(window, full === true ? "full" : "compact"))
    )
  }),
  Tool.make({
    name: "browser_click",
    description:
      "Click an element. Gives {url, title} and what changed: snapshot for a new page, changed for new lines of the same one.",
    parameters: Schema.Struct({ ref: Arguments.text("Handle of the element in the latest snapshot, such as e5") }),
    run: Effect.fn("browser_click.run")(({ ref }) =>
      sessions.within((window) => Effect.zipRight(Element.click(window, ref), Acts.afterwards(window)))
    )
  }),
  Tool.make({
    name: "browser_type",
    description:
      "Put text into a field, in place of what it holds. A line break at the end of a one-line field presses Enter. For a " +
      "drop-down list give the option's text. Gives the same as browser_click.",
    parameters: Schema.Struct({
      ref: Arguments.text("Handle of the field in the latest snapshot, such as e5"),
      text: Arguments.text("The text")
    }),
    run: Effect.fn("browser_type.run")(({ ref, text }) =>
      sessions.within((window) =>
        Effect.zipRight(Element.type(window, ref, text.toWellFormed().slice(0, 100_000)), Acts.afterwards(window))
      )
    )
  }),
  Tool.make({
    name: "browser_scroll",
    description: "Scroll the page by about a window's height. Gives the snapshot from there, and how far it is.",
    parameters: Schema.Struct({ direction: Arguments.choice("Where to", "up", "down") }),
    run: Effect.fn("browser_scroll.run")(({ direction }) => sessions.within((window) => Acts.scroll(window, direction)))
  }),
  Tool.make({
    name: "browser_back",
    description: "Go back to the page before, or from a new tab to the one that opened it. Gives its snapshot.",
    parameters: none,
    run: Effect.fn("browser_back.run")(() => sessions.within(Acts.back))
  }),
  Tool.make({
    name: "browser_press",
    description: "Press a key, or several together, where the focus is. Gives the same as browser_click.",
    parameters: Schema.Struct({ key: Arguments.text("Such as Enter, Escape, Tab, ArrowDown, PageDown, a, Control+A") }),
    run: Effect.fn("browser_press.run")(({ key }) =>
      sessions.within((window) => Effect.zipRight(Acts.press(window, key), Acts.afterwards(window)))
    )
  }),
  Tool.make({
    name: "browser_get_images",
    description: "List the images of the page: {images: [{src, alt, width, height}], total}.",
    parameters: none,
    run: Effect.fn("browser_get_images.run")(() => sessions.within(Acts.images))
  }),
  Either.match(seeing, {
    onLeft: (lacks): Lack => ({ name: "browser_vision", lacks }),
    onRight: ({ see }) =>
      Tool.make({
        name: "browser_vision",
        description:
          "Ask a question about how the page looks: a model that sees is shown a picture of the window. Gives {success, analysis}.",
        parameters: Schema.Struct({ question: Arguments.text("What you want to know") }),
        run: Effect.fn("browser_vision.run")(function* ({ question }) {
          const picture = yield* sessions.within(Acts.picture)
          return { success: true, analysis: yield* see(picture, question, "browser_vision") }
        })
      })
  }),
  Tool.make({
    name: "browser_close",
    description: "Close the browser of this session, with its pages and cookies. browser_navigate opens a new one.",
    parameters: none,
    run: Effect.fn("browser_close.run")(() =>
      Effect.map(sessions.close, (closed) => ({ success: true, note: closed ? "closed" : "no page was open" }))
    )
  })
]
