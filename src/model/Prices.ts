/** Tokens and money of one call: the endpoint's own figures, and a list of prices where it names no cost. Pure. */
import { Predicate } from "effect"
import type { Price, Request, Usage } from "./Model.ts"

export interface Spent {
  readonly usage: Usage
  /** False when nothing tells what the call cost. */
  readonly priced: boolean
}

/** The price of a request's model. */
export const priceOf = ({ model, prices }: Pick<Request, "model" | "prices">): Price | undefined =>
  Object.hasOwn(prices, model) ? prices[model] : prices["*"]

/** Reads the `usage` of a body. A cost that the endpoint names counts, also 0; a price needs tokens to be worth anything. */
export const read = (usage: unknown, price: Price | undefined): Spent => {
  const prompt = count(field(usage, "prompt_tokens"))
  const completion = count(field(usage, "completion_tokens"))
  const tokens = {
    prompt,
    completion,
    reasoning: Math.max(
      count(field(field(usage, "completion_tokens_details"), "reasoning_tokens")),
      count(field(usage, "reasoning_tokens"))
    ),
    // One figure under the names of OpenAI, Anthropic and DeepSeek.
    cached: Math.max(
      count(field(field(usage, "prompt_tokens_details"), "cached_tokens")),
      count(field(usage, "cache_read_input_tokens")),
      count(field(usage, "prompt_cache_hit_tokens"))
    ),
    total: Math.max(count(field(usage, "total_tokens")), prompt + completion)
  }
  const told = costTold(usage)
  const priced = told !== undefined || (price !== undefined && tokens.total > 0)
  return { usage: { ...tokens, cost_usd: rounded(told ?? costOf(tokens, price)) }, priced }
}

/** What the endpoint charges; with a provider's key of the user's own, what that provider charges too. */
const costTold = (usage: unknown): number | undefined => {
  const cost = field(usage, "cost")
  if (!isAmount(cost)) return undefined
  const upstream = field(field(usage, "cost_details"), "upstream_inference_cost")
  return amount(cost) + (field(usage, "is_byok") === true ? amount(upstream) : 0)
}

/** What tokens cost at a price, US dollars; 0 where there is none. */
export const costOf = (
  { prompt, completion, cached }: Pick<Usage, "prompt" | "completion" | "cached">,
  price: Price | undefined
): number => {
  if (price === undefined) return 0
  const kept = Math.min(prompt, cached)
  return ((prompt - kept) * price.prompt + kept * (price.cached ?? price.prompt) + completion * price.completion) / 1e6
}

/** To the billionth of a dollar: sums of millions of calls stay exact to the cent. */
const rounded = (dollars: number): number => Math.round(dollars * 1e9) / 1e9

/** A whole number of tokens, whatever an endpoint makes of it: sums of millions of them stay exact. */
const count = (value: unknown): number => Math.round(amount(value))

const isAmount = (value: unknown): value is number => Predicate.isNumber(value) && Number.isFinite(value) && value >= 0

/** Bounded, for sums that stay numbers. */
const amount = (value: unknown): number => (isAmount(value) ? Math.min(1e9, value) : 0)

const field = (value: unknown, name: string): unknown => (Predicate.isRecord(value) ? value[name] : undefined)
