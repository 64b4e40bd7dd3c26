/** The questions of `setup`, asked on a terminal: what is not answered stays as it is. */
import * as Prompt from "@effect/cli/Prompt"
import { Effect, Redacted } from "effect"
import { defaults } from "../../RunConfig.ts"
import type * as ConfigFile from "../ConfigFile.ts"
import * as Key from "../Key.ts"
import * as Change from "./Change.ts"
import * as Known from "./Known.ts"

/** What stands in the file, or is given beside the questions. */
interface Present {
  readonly option: (name: string) => string | undefined
  readonly isSet: (variable: string) => boolean
}

const presentIn = ({ options, variables }: ConfigFile.ConfigFile): Present => ({
  option: (name) => {
    const value = options.get(name)
    return value === undefined ? undefined : String(value)
  },
  isSet: (variable) => variables.has(variable)
})

/** A line of text; empty for what stands there already. */
const line = (message: string, check: (value: string) => string | undefined = () => undefined) =>
  Prompt.text({
    message,
    validate: (value) => {
      const why = value.trim() === "" ? undefined : check(value.trim())
      return why === undefined ? Effect.succeed(value.trim()) : Effect.fail(why)
    }
  })

/** A value that is shown nowhere, not by its length either. */
const hidden = (message: string, variable: string) =>
  Prompt.hidden({
    message,
    validate: (value) => {
      const why = value.trim() === "" ? undefined : Change.misfit(variable, value.trim())
      return why === undefined ? Effect.succeed(value.trim()) : Effect.fail(why)
    }
  }).pipe(Prompt.map(Redacted.value))

const kept = (isSet: boolean): string => (isSet ? " (set, Enter keeps it)" : " (Enter skips it)")

/** The value of a variable. */
const variable = Effect.fn("Questions.variable")(function* (present: Present, name: string, message: string) {
  const known = Known.find(name)
  const asked = `${message}${kept(present.isSet(name))}`
  const value = yield* known === undefined || Known.isSecret(known)
    ? hidden(asked, name)
    : line(asked, (given) => Change.misfit(name, given))
  return value === "" ? Change.none : Change.variables({ [name]: value })
})

/** The value of an option. */
const option = Effect.fn("Questions.option")(function* (present: Present, name: string, message: string) {
  const now = present.option(name)
  const value = yield* line(`${message} ${now === undefined ? "(Enter skips it)" : `(Enter keeps ${now})`}`)
  return value === "" ? Change.none : Change.options({ [name]: value })
})

/** Questions that belong to one choice, one after the other. */
const several = <E, R>(questions: ReadonlyArray<Effect.Effect<Change.Change, E, R>>) =>
  Effect.reduce(questions, Change.none, (all, question) => Effect.map(question, (one) => Change.and(all, one)))

type Asked = ReturnType<typeof variable> | ReturnType<typeof option>

/** One of several ways; the first is to leave all as it is. */
const choice = Effect.fn("Questions.choice")(function* (
  message: string,
  leave: string,
  ways: ReadonlyArray<readonly [title: string, questions: ReadonlyArray<Asked>, sets?: Change.Change]>
) {
  const chosen = yield* Prompt.select({
    message,
    choices: [{ title: leave, value: -1 }, ...ways.map(([title], at) => ({ title, value: at }))],
    maxPerPage: 12
  })
  const [, questions = [], sets = Change.none] = ways[chosen] ?? []
  const answered = yield* several(questions)
  return Change.and(sets, answered)
})

const endpoints = [
  { title: "OpenRouter", url: defaults.base_url, variable: "OPENROUTER_API_KEY" },
  { title: "Nous Portal", url: Key.portal, variable: "NOUS_API_KEY" },
  { title: "OpenAI", url: "https://api.openai.com/v1", variable: "OPENAI_API_KEY" },
  { title: "A server on this machine", url: "", variable: "BATCH_RUNNER_API_KEY" },
  { title: "Another address", url: "", variable: "BATCH_RUNNER_API_KEY" }
]

const isAddress = (value: string): string | undefined => Change.misfit("SEARXNG_URL", value)

/** The endpoint, its address and its key. */
const endpoint = Effect.fn("Questions.endpoint")(function* (present: Present) {
  const now = present.option("base_url")
  const chosen = yield* Prompt.select({
    message: "Which endpoint answers the calls?",
    choices: [
      ...(now === undefined ? [] : [{ title: `As it is: ${now}`, value: -1 }]),
      ...endpoints.map(({ title }, at) => ({ title, value: at }))
    ]
  })
  const way = endpoints[chosen]
  if (way === undefined) return Change.none
  // A key for any endpoint would go before OpenAI's own.
  const keptIn = way.title === "OpenAI" && present.isSet("BATCH_RUNNER_API_KEY") ? "BATCH_RUNNER_API_KEY" : way.variable
  const local = "http://127.0.0.1:8000/v1"
  const isLocal = way.title === "A server on this machine"
  const typed =
    way.url === ""
      ? yield* line(`Its address, up to and with /v1${isLocal ? ` (Enter for ${local})` : ""}`, isAddress)
      : ""
  const url = way.url || typed || (isLocal ? local : "")
  const key = yield* variable(
    present,
    keptIn,
    `Key of ${isLocal ? "that server, if it wants one" : way.url === "" ? "that endpoint" : way.title}`
  )
  return Change.and(url === "" ? Change.none : Change.options({ base_url: url }), key)
})

/** Nous Portal: one key for all. */
const portal = Effect.fn("Questions.portal")(function* (present: Present) {
  return yield* variable(present, "NOUS_API_KEY", "Key of Nous Portal, for its endpoint and its tools")
})

const tools = (present: Present): ReadonlyArray<ReturnType<typeof choice>> => {
  const key = (name: string, title: string) => variable(present, name, title)
  const skip = "As it is"
  return [
    choice(
      "What searches the web?",
      skip,
      Known.searchBackends.map(({ name, title, needs: [need] }) => [
        title,
        [key(need, name === "searxng" ? "Its address" : `Key of ${title}`)],
        Change.options({ search_backend: name })
      ])
    ),
    choice("What looks at images?", skip, [
      ["A model of the endpoint", [option(present, "vision_model", "Id of the model that looks at images")]]
    ]),
    choice("What makes images?", skip, [
      ["A model of the endpoint", [option(present, "image_model", "Id of the model that makes images")]],
      ["FAL", [key("FAL_KEY", "Key of FAL")]]
    ]),
    choice("What makes speech?", skip, [
      [
        "A model of the endpoint",
        [
          option(present, "tts_model", "Id of the model that makes speech"),
          option(present, "tts_voice", "Name of the voice")
        ]
      ]
    ]),
    choice("Which browser is used?", "As it is: a Chromium of this machine, unless another is set", [
      ["A Chromium at a path of its own", [key("CHROMIUM_PATH", "Path of the program")]],
      ["A browser elsewhere, by its CDP address", [key("BROWSER_CDP_URL", "CDP address, such as wss://…")]],
      [
        "Browserbase",
        [key("BROWSERBASE_API_KEY", "Key of Browserbase"), key("BROWSERBASE_PROJECT_ID", "Id of the project")]
      ],
      ["Browser Use", [key("BROWSER_USE_API_KEY", "Key of Browser Use")]]
    ])
  ]
}

/** Models among which one is chosen at most; more are not gone through. */
const chosenFrom = 40

const another = Symbol("another")

/** The model: one of a list that is short, else its id. */
const model = Effect.fn("Questions.model")(function* (present: Present, ids: ReadonlySet<string>, otherwise: string) {
  const now = present.option("model")
  const byId = option(present, "model", `Id of the model${now === undefined ? `, unless it is ${otherwise}` : ""}`)
  if (ids.size === 0 || ids.size > chosenFrom) return yield* byId
  const current = now ?? otherwise
  const asItIs = { title: `As it is: ${current}`, value: undefined }
  const listed = [...ids].filter((id) => id !== now).map((id) => ({ title: shown(id), value: id }))
  const other = { title: "Another", value: another }
  const chosen = yield* Prompt.select<string | symbol | undefined>({
    message: "Which model, unless a run says otherwise?",
    // What the endpoint does not list must not be a slip of the Enter key.
    choices: [...(ids.has(current) || otherwise !== defaults.model ? [asItIs, ...listed] : [...listed, asItIs]), other],
    maxPerPage: 12
  })
  if (chosen === another) return yield* byId
  return typeof chosen === "string" ? Change.options({ model: chosen }) : Change.none
})

/** An endpoint's own words on one line of the screen. */
const shown = (id: string): string => id.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, " ").slice(0, 100)

/** How the questions are asked. */
interface Manner {
  /** Whether the endpoint is chosen already. */
  readonly isPortal: boolean
  /** The models of the endpoint that was answered; none where it tells none. */
  readonly idsOf: (answered: Change.Change) => Effect.Effect<ReadonlySet<string>>
}

/** Asks all of it. */
export const ask = Effect.fn("Questions.ask")(function* (file: ConfigFile.ConfigFile, { isPortal, idsOf }: Manner) {
  const present = presentIn(file)
  const where = yield* isPortal ? portal(present) : endpoint(present)
  const ids = yield* idsOf(where)
  const named = yield* model(present, ids, isPortal ? "one that the portal lists" : defaults.model)
  const rest = yield* several(tools(present))
  return [where, named, rest].reduce(Change.and, Change.none)
})
