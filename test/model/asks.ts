/** Asks and requests that the tests of the model share. */
import { Duration } from "effect"
import type { Ask, Request } from "../../src/model/Model.ts"
import type { ToolDefinition } from "../../src/tools/Tool.ts"

export const tool = (name: string): ToolDefinition => ({
  type: "function",
  function: { name, description: `Runs ${name}.`, parameters: { type: "object", properties: {} } }
})

export const ask = (more: Partial<Ask> = {}): Ask => ({
  messages: [{ role: "user", content: "Say hello." }],
  tools: [],
  prompt: "Say hello.",
  turn: 0,
  sample: 0,
  place: 0,
  occurrence: 0,
  ...more
})

export const request = (baseUrl: string, more: Partial<Request> = {}): Request => ({
  model: "test-model",
  baseUrl,
  maxTokens: undefined,
  provider: undefined,
  reasoning: undefined,
  callLimit: Duration.seconds(20),
  promptCache: true,
  prices: {},
  ...more
})
