/** What a dry run found, as a person reads it. Pure. */
import { counted } from "../../agent/Preview.ts"
import type { DatasetService } from "../../dataset/Dataset.ts"
import type { Checked } from "../../model/openai/Models.ts"
import type { Settings } from "../../RunConfig.ts"
import { percent } from "../../report/Statistics.ts"
import type { Distribution } from "../../sampling/Distribution.ts"
import type { Toolset } from "../../tools/Toolset.ts"
import * as Toolsets from "../Toolsets.ts"
import { type Estimate, priceOf } from "./Estimate.ts"
import type { Plan } from "./Plan.ts"

/** Lines of one subject: its name stands before the first. */
export const rows = (name: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.map((line, at) => `  ${(at === 0 ? name : "").padEnd(10)} ${line}`)

const dollars = (amount: number): string =>
  `$${amount < 0.01 && amount > 0 ? amount.toPrecision(2) : amount.toFixed(2)}`

/** Two figures behind the point at most. */
const rounded = (value: number): number => Math.round(value * 100) / 100

export const prompts = ({ index, badLines }: DatasetService, { samples_per_prompt }: Settings): string => {
  const bad = badLines.count === 0 ? "" : `, ${counted(badLines.count, "bad line")} skipped`
  const samples =
    samples_per_prompt === 1
      ? ""
      : ` × ${samples_per_prompt} samples: ${counted(index.size * samples_per_prompt, "session")}`
  return `${index.size} valid${bad}${samples}`
}

export const plan = ({ holder, doneBefore, leftOut, toDo, differences, rows: found }: Plan): ReadonlyArray<string> => {
  const strays = found > doneBefore ? ` (${counted(found, "finished row")} in the folder)` : ""
  const hopeless = leftOut === 0 ? [] : [`${leftOut} left out for a failure that cannot go better`]
  return [
    [`${doneBefore} done before${strays}`, ...hopeless, `${toDo} to do`].join(", "),
    ...(holder === undefined
      ? []
      : [`being worked on by another batch-runner (${holder}): these are the figures of now`]),
    ...(differences.length === 0 ? [] : [`settings differ from the last session: ${differences.join("; ")}`])
  ]
}

export const batches = ({ prompts, nextBatch }: Plan, { batch_size }: Settings): string => {
  const count = Math.ceil(prompts / batch_size)
  const to = count > 1 ? ` to batch_${nextBatch + count - 1}.jsonl` : ""
  return count === 0
    ? "none would be made"
    : `${count} of up to ${counted(batch_size, "prompt")}: batch_${nextBatch}.jsonl${to}`
}

export const mix = (
  given: Distribution,
  toolsets: ReadonlyArray<Toolset>,
  drawn: Plan | undefined
): ReadonlyArray<string> => {
  const shares = given.toolsets.flatMap(([name]) => {
    const count = drawn?.mix.get(name) ?? 0
    return count === 0 ? [] : [`${name} ${count} (${percent(count, drawn?.mixed ?? 0)} %)`]
  })
  const of =
    drawn === undefined || drawn.mixed === 0
      ? ""
      : `, of ${drawn.mixed < drawn.toDo ? "the first " : ""}${counted(drawn.mixed, "session")} to do: ${shares.join(", ")}`
  const lacks = Toolsets.lacking(toolsets, given)
  return [`${given.name}${of}`, ...(lacks === "" ? [] : [`cannot work here: ${lacks}`])]
}

export const model = (config: Settings, { found, credit }: Checked): ReadonlyArray<string> => {
  const { origin, pathname } = new URL(config.base_url)
  const at = `${config.model} at ${origin}${pathname}`
  const left = credit === undefined ? [] : [`the key may still spend ${dollars(credit)}`]
  switch (found._tag) {
    case "Listed":
      return [`${at}: the endpoint lists it among ${counted(found.models, "model")}`, ...left]
    case "NotListed":
      return [`${at}: not among the ${counted(found.models, "model")} that the endpoint lists`, ...left]
    case "NotTold":
      return [`${at}: ${found.why}`, ...left]
    case "Trouble":
      return [`${at}: does not work`, ...left]
  }
}

export const calls = (estimate: Estimate, { toDo, rows: found }: Plan, config: Settings): ReadonlyArray<string> => {
  const { session, leastCalls, mostCalls } = estimate
  const range =
    toDo === 0 ? "none" : `${leastCalls} to ${mostCalls}, with at most ${counted(config.max_turns, "turn")} a session`
  if (session === undefined || toDo === 0) return [range]
  const cost = session.cost === undefined ? "" : `, ${dollars(session.cost)}`
  return [
    range,
    `about ${Math.round(session.calls * toDo)}, by ${counted(found, "finished session")} of ${rounded(session.calls)} calls and ${Math.round(session.tokens)} tokens${cost} on average`
  ]
}

/** Tokens and money together, where earlier sessions tell; else what the prices are. */
export const costs = ({ session }: Estimate, { toDo }: Plan, config: Settings): ReadonlyArray<string> => {
  const price = priceOf(config)
  const known =
    price === undefined ? "" : ` at ${dollars(price.prompt)} and ${dollars(price.completion)} per million tokens`
  if (toDo === 0) return ["nothing"]
  if (session === undefined) return [`not known before sessions are finished${known === "" ? "" : `;${known}`}`]
  const money = session.cost === undefined ? "at no price that is known" : `${dollars(session.cost * toDo)}${known}`
  return [`about ${Math.round(session.tokens * toDo)} tokens, ${money}`]
}

export const limits = (config: Settings, { spentUsd, spentTokens }: Estimate): ReadonlyArray<string> => {
  const { max_cost, max_total_tokens, max_cost_per_prompt, max_tokens_per_prompt } = config
  const given = [
    max_cost === null ? "" : `--max_cost ${dollars(max_cost)}, ${dollars(spentUsd)} of it spent`,
    max_total_tokens === null ? "" : `--max_total_tokens ${max_total_tokens}, ${spentTokens} of them used`,
    max_cost_per_prompt === null ? "" : `--max_cost_per_prompt ${dollars(max_cost_per_prompt)}`,
    max_tokens_per_prompt === null ? "" : `--max_tokens_per_prompt ${max_tokens_per_prompt}`
  ].filter((each) => each !== "")
  const unpriced =
    (max_cost ?? max_cost_per_prompt) !== null && priceOf(config) === undefined && spentUsd === 0
      ? ["nothing tells yet what calls cost: the endpoint must report it, else give --prices"]
      : []
  return given.length === 0 ? [] : [given.join("; "), ...unpriced]
}
