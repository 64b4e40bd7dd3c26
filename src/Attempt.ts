/** One prompt, once: its toolsets, its sandbox, its session, and the outcome that is worth keeping. */
import { Clock, Context, Effect, Exit, Scope } from "effect"
import * as Agent from "./agent/Agent.ts"
import { limitsOf } from "./agent/Allowance.ts"
import { type AttemptError, Ending, SessionTimedOut } from "./agent/Ending.ts"
import * as SystemPrompt from "./agent/SystemPrompt.ts"
import { TimeLimit } from "./agent/TimeLimit.ts"
import * as Told from "./agent/Told.ts"
import * as ToolAccount from "./agent/ToolAccount.ts"
import { Transcript } from "./agent/Transcript.ts"
import { Dataset, type DatasetError } from "./dataset/Dataset.ts"
import * as Span from "./events/Span.ts"
import { kindOf as kindOfReason, type Message, type ModelError } from "./model/Model.ts"
import * as Result from "./Result.ts"
import { RunConfig, type Settings } from "./RunConfig.ts"
import { Sampler } from "./sampling/Sampler.ts"
import { Sandbox, Sandboxes } from "./sandbox/Sandbox.ts"
import type { Unit } from "./store/Resume.ts"
import type { Entry } from "./store/Store.ts"
import { Toolbox } from "./tools/Toolbox.ts"
import { ToolSession } from "./tools/ToolSession.ts"
import { timestamp } from "./trajectory/Trajectory.ts"

/**
 * Runs one session. Whatever happens to it is an outcome, and nothing when the budget of the run ended it; what stops the
 * whole run is an error: a data set that can no longer be read, a model that no call can reach.
 */
export const run = Effect.fnUntraced(function* (unit: Unit) {
  const config = yield* RunConfig
  const dataset = yield* Dataset
  const toolbox = yield* Toolbox
  const prompt = yield* dataset.read(unit.place)
  const draw = {
    key: dataset.index.key(unit.place),
    occurrence: dataset.index.occurrence(unit.place),
    sample: unit.sample
  }
  const toolsets = (yield* Sampler).sample(draw)
  yield* Span.annotate({ "batch_runner.toolsets": toolsets })
  const offer = toolbox.offer(toolsets)
  const transcript = new Transcript()
  const { occurrence } = draw
  const { ending, system } = yield* inSandbox({ config, unit, prompt, occurrence, offer, transcript })
  if (ending._tag === "Broke" && isBudget(ending.error)) return undefined
  const now = timestamp(yield* Clock.currentTimeMillis)
  const about: Result.About = {
    config,
    unit,
    prompt,
    key: draw.key,
    occurrence,
    toolsets,
    offer,
    transcript,
    system,
    now
  }
  const outcome = Result.make(about, ending, toolbox.toolNames)
  yield* Effect.logInfo(Result.told(outcome, toolbox.toolNames, config.log_prefix_chars))
  const entry: Entry = { ...draw, place: unit.place, batch: unit.batch, outcome }
  return entry
}, asSpan)

/** The span of an attempt. */
function asSpan<E extends DatasetError | ModelError, R>(attempt: Effect.Effect<Entry | undefined, E, R>, unit: Unit) {
  const attributes = {
    "batch_runner.prompt_index": unit.place,
    "batch_runner.sample": unit.sample,
    "batch_runner.batch": unit.batch,
    "batch_runner.attempt": unit.attempt
  }
  const ended = Exit.match({
    onSuccess: (entry: Entry | undefined) => ({
      "batch_runner.outcome": entry?.outcome._tag.toLowerCase() ?? Span.released,
      ...(entry?.outcome._tag === "Failed" && {
        "batch_runner.kind": entry.outcome.failure.kind,
        "error.type": entry.outcome.failure.kind
      })
    }),
    onFailure: Span.failure(({ _tag }: E) => ({ "error.type": kindOfReason(_tag) }), {
      "batch_runner.outcome": Span.released
    })
  })
  return Span.within("prompt", { root: true, attributes, ended }, attempt)
}

/** Whether it was the budget of the run that ended a session. */
const isBudget = (error: AttemptError): boolean => error._tag === "ModelError" && error.reason === "BudgetReached"

interface Ended {
  readonly ending: Ending
  /** The system prompt without the part that is saved nowhere. */
  readonly system: string
}

const broke = (error: AttemptError): Ended => ({ ending: Ending.Broke({ error }), system: "" })

/** What a session is run with. */
interface Setting extends Pick<Result.About, "config" | "unit" | "prompt" | "occurrence" | "offer" | "transcript"> {}

/** The session in a sandbox of its own, which is given back when this ends. Its time begins when the sandbox is there. */
const inSandbox = Effect.fnUntraced(function* (setting: Setting) {
  const { config, unit, prompt } = setting
  const sandboxes = yield* Sandboxes
  const limit = yield* TimeLimit
  const spec = {
    id: `${unit.batch}-${unit.place}-${unit.sample}`,
    image: prompt.image || config.image,
    cwd: prompt.cwd || config.cwd
  }
  const opened = Effect.scopedWith((scope) =>
    Effect.flatMap(Scope.extend(Told.opening(sandboxes.open(spec)), scope), (sandbox) =>
      limit.within(
        Effect.provide(
          session(setting, sandbox.cwd),
          Context.make(Sandbox, sandbox).pipe(Context.add(ToolSession, toolSession(setting, scope)))
        ),
        () => broke(new SessionTimedOut({ seconds: limit.seconds }))
      )
    )
  )
  return yield* Effect.catchTag(opened, "SandboxError", (error) => Effect.succeed(broke(error)))
})

/** What the tools of the session share. Their resources end with `scope`, and so before the sandbox. */
const toolSession = ({ config, unit, prompt, occurrence, transcript }: Setting, scope: Scope.Scope) => {
  const whose = { prompt: prompt.text, place: unit.place, sample: unit.sample, occurrence }
  return ToolAccount.make(whose, limitsOf(config), transcript, scope)
}

const session = Effect.fnUntraced(function* (setting: Setting, cwd: string) {
  const { config, unit, prompt, occurrence, offer, transcript } = setting
  const system = SystemPrompt.make({ cwd, tools: offer.tools.map(({ name }) => name) })
  const ending = yield* Agent.run(
    {
      prompt: prompt.text,
      sample: unit.sample,
      place: unit.place,
      occurrence,
      opening: opening(config, system, prompt.text),
      tools: offer.tools,
      definitions: offer.definitions,
      maxTurns: config.max_turns,
      ...limitsOf(config),
      logChars: config.log_prefix_chars
    },
    transcript
  )
  const ended: Ended = { ending, system }
  return ended
})

const opening = (config: Settings, system: string, prompt: string): ReadonlyArray<Message> => [
  {
    role: "system",
    content: config.ephemeral_system_prompt === "" ? system : `${system}\n\n${config.ephemeral_system_prompt}`
  },
  ...config.prefill_messages,
  { role: "user", content: prompt }
]
