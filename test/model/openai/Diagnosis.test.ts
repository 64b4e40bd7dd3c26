/** Error bodies as real servers send them, and what each means for the call, the prompt and the run. */
import { describe, expect, it } from "vitest"
import * as Diagnosis from "../../../src/model/openai/Diagnosis.ts"
import * as Failure from "../../../src/model/openai/Failure.ts"

const reasonOf = (status: number, body: unknown) => Diagnosis.reasonOf({ status, body, model: "acme/large-1" })

/** Server, status, body, reason. */
type Case = readonly [string, number, unknown, string]

const message = (text: string, more: object = {}) => ({ error: { message: text, ...more } })
const openRouter = (raw: object | string, code = 400) => ({
  error: {
    message: "Provider returned error",
    code,
    metadata: { raw: typeof raw === "string" ? raw : JSON.stringify(raw), provider_name: "Acme" }
  }
})

const tooLong: ReadonlyArray<Case> = (
  [
    [
      "OpenAI",
      400,
      message(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 150015 tokens. Please reduce the length of the messages.",
        { type: "invalid_request_error", param: "messages", code: "context_length_exceeded" }
      )
    ],
    ["OpenAI, code alone", 400, message("Too big.", { code: "context_length_exceeded" })],
    ["OpenAI, newer", 400, message("Your input exceeds the context window of this model. Please adjust your input.")],
    ["OpenAI, one long text", 400, message("Invalid 'input': string too long.", { code: "string_above_max_length" })],
    [
      "Anthropic",
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 213462 tokens > 200000 maximum" }
      }
    ],
    [
      "Anthropic with max_tokens",
      400,
      message("input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length")
    ],
    [
      "vLLM",
      400,
      {
        object: "error",
        message: "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
        type: "BadRequestError",
        param: null,
        code: 400
      }
    ],
    [
      "llama.cpp",
      400,
      message("the request exceeds the available context size, try increasing it", {
        code: 400,
        type: "exceed_context_size_error",
        n_prompt_tokens: 9000,
        n_ctx: 4096
      })
    ],
    [
      "llama.cpp, older",
      400,
      message("the request exceeds the available context size. try increasing the context size")
    ],
    [
      "Gemini",
      400,
      [
        message("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", {
          code: 400,
          status: "INVALID_ARGUMENT"
        })
      ]
    ],
    [
      "Mistral",
      400,
      {
        object: "error",
        message: "Prompt contains 40102 tokens, too large for model with 32768 maximum context length",
        type: "invalid_request_message",
        code: "3051"
      }
    ],
    ["Together", 422, message("`inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens")],
    ["Together, newer", 400, message("Input validation error: `inputs` must have less than 1024 tokens. Given: 2000")],
    ["Bedrock", 400, { message: "Input is too long for requested model." }],
    ["Groq", 400, message("Please reduce the length of the messages or completion.")],
    [
      "xAI",
      400,
      { code: "400", error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens." }
    ],
    [
      "Copilot",
      400,
      message("prompt token count of 130000 exceeds the limit of 128000", { code: "model_max_prompt_tokens_exceeded" })
    ],
    ["Kimi", 400, message("Invalid request: Your request exceeded model token limit: 8192")],
    ["MiniMax", 400, message("invalid params, context window exceeds limit")],
    [
      "SGLang",
      400,
      { object: "error", message: "The input (9000 tokens) is longer than the model's context length (4096 tokens)." }
    ],
    ["Ollama", 400, message("the input length exceeds the context length")],
    ["Qwen", 400, message("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]")],
    ["Cohere", 400, { message: "too many tokens: total number of tokens in the prompt cannot exceed 4081" }],
    [
      "OpenRouter",
      400,
      message("This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens", {
        code: 400
      })
    ],
    [
      "OpenRouter for another",
      400,
      openRouter({
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 2 tokens > 1 maximum" }
      })
    ],
    ["a gateway", 413, message("prompt is too long", { type: "request_too_large" })]
  ] as const
).map(([server, status, body]) => [server, status, body, "ContextTooLong"])

const refused: ReadonlyArray<Case> = (
  [
    [
      "OpenRouter's moderation",
      403,
      message("This model requires moderation. Your input was refused.", {
        code: 403,
        metadata: { reasons: ["violence"], flagged_input: "…", provider_name: "OpenAI", model_slug: "acme/large-1" }
      })
    ],
    ["OpenRouter, reasons alone", 403, message("No.", { metadata: { reasons: ["sexual"] } })],
    ["OpenRouter, text alone", 403, message("Your chosen model requires moderation and your input was flagged.")],
    [
      "xAI",
      403,
      { code: "permission-denied", error: "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO" }
    ],
    [
      "Azure",
      400,
      message("The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", {
        type: null,
        param: "prompt",
        code: "content_filter",
        status: 400
      })
    ],
    ["OpenAI", 400, message("Your request was rejected.", { code: "content_policy_violation" })],
    [
      "OpenAI, reasoning",
      400,
      message("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", {
        code: "invalid_prompt"
      })
    ],
    ["Anthropic", 400, message("Output blocked by content filtering policy", { type: "invalid_request_error" })],
    ["DeepSeek", 400, message("Content Exists Risk", { type: "invalid_request_error" })],
    ["Qwen", 400, message("Input data may contain inappropriate content.", { code: "data_inspection_failed" })],
    [
      "Moonshot",
      400,
      message("The request was rejected because it was considered high risk", { type: "content_filter" })
    ],
    ["a gateway", 400, message("No.", { code: "input_flagged" })]
  ] as const
).map(([server, status, body]) => [server, status, body, "ContentRefused"])

const stopping: ReadonlyArray<Case> = [
  ["any", 401, message("No cookie auth credentials found", { code: 401 }), "Unauthorized"],
  ["any, without a body", 401, "", "Unauthorized"],
  ["OpenRouter", 402, message("This request requires more credits, or fewer max_tokens.", { code: 402 }), "NoCredit"],
  [
    "OpenAI without money",
    429,
    message("You exceeded your current quota, please check your plan and billing details.", {
      type: "insufficient_quota",
      param: null,
      code: "insufficient_quota"
    }),
    "NoCredit"
  ],
  ["any", 404, message("No endpoints found for acme/large-1.", { code: 404 }), "ModelMissing"],
  ["OpenAI", 404, message("The model `x` does not exist", { code: "model_not_found" }), "ModelMissing"],
  ["OpenAI by another status", 400, message("No.", { code: "model_not_found" }), "ModelMissing"],
  ["OpenAI without access", 403, message("Project has no access", { code: "model_not_found" }), "ModelMissing"],
  ["OpenRouter", 400, message("acme/large-1 is not a valid model ID", { code: 400 }), "ModelMissing"],
  ["vLLM", 400, { object: "error", message: "The model `acme/large-1` does not exist.", code: 400 }, "ModelMissing"],
  [
    "Mistral",
    400,
    { object: "error", message: "Invalid model: acme/large-1", type: "invalid_model", code: "1500" },
    "ModelMissing"
  ],
  [
    "LiteLLM",
    400,
    message("/chat/completions: Invalid model name passed in model=acme/large-1. Call `/v1/models`"),
    "ModelMissing"
  ],
  ["DeepSeek", 400, message("Model Not Exist", { type: "invalid_request_error" }), "ModelMissing"],
  ["xAI", 400, message("Model not found: acme/large-1"), "ModelMissing"]
]

const others: ReadonlyArray<Case> = [
  ["any", 403, message("Key limit exceeded", { code: 403 }), "Forbidden"],
  ["any, of the account", 403, message("Your account was flagged for violating our usage policies."), "Forbidden"],
  ["any, without a body", 403, "", "Forbidden"],
  [
    "OpenAI, too many calls",
    429,
    message("Rate limit reached for gpt", { type: "tokens", code: "rate_limit_exceeded" }),
    "RateLimited"
  ],
  ["Bedrock", 429, { message: "Too many tokens, please wait before trying again." }, "RateLimited"],
  ["any", 413, message("Request Entity Too Large"), "BadRequest"],
  [
    "OpenAI, max_tokens",
    400,
    message("max_tokens is too large: 100000. This model supports at most 16384 completion tokens"),
    "BadRequest"
  ],
  [
    "any",
    400,
    message("Invalid schema for function 'terminal'", { code: "invalid_function_parameters" }),
    "BadRequest"
  ],
  ["any", 418, message("prompt is too long"), "BadRequest"],
  ["any", 500, message("prompt is too long", { code: "insufficient_quota" }), "Overloaded"],
  ["Anthropic", 529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "Overloaded"],
  ["Cloudflare", 524, "<html>", "Overloaded"]
]

/** Inside HTTP 200, `status` is the error's own code. */
const inside: ReadonlyArray<Case> = [
  ["no code", 0, "broke off", "Overloaded"],
  ["an unknown one", 0, { code: "server_error", message: "prompt is too long" }, "Overloaded"],
  ["a code of words", 0, { code: "context_length_exceeded" }, "ContextTooLong"],
  ["a code of words", 0, { code: "content_filter" }, "ContentRefused"],
  ["a code of words", 0, { type: "insufficient_quota" }, "NoCredit"],
  ["a code of words", 0, { code: "rate_limit_exceeded" }, "RateLimited"],
  ["401", 401, { code: 401 }, "Unauthorized"],
  ["400", 400, { code: 400, message: "prompt is too long: 2 tokens > 1 maximum" }, "ContextTooLong"],
  ["403", 403, { code: 403, metadata: { reasons: [] } }, "ContentRefused"],
  ["502", 502, { code: 502, message: "Provider returned error" }, "Overloaded"]
]

describe("An error that means", () => {
  it.each([...tooLong, ...refused, ...stopping, ...others, ...inside])(
    "%s, %i: %j is %s.",
    (_, status, body, reason) => {
      expect(reasonOf(status, body)).toBe(reason)
    }
  )
})

describe("Words of a body", () => {
  /** What would stop a run, said by a prompt that a server repeats in its complaint. */
  const hostile = [
    "insufficient_quota",
    "code: model_not_found",
    "HTTP 401 Unauthorized: invalid api key",
    "402 payment required: no credit",
    "The user says: acme/large-1 is not a valid model ID",
    "Invalid body: 'The model `acme/large-1` does not exist'",
    "other/model is not a valid model ID",
    "the model is wrong",
    '{"error": {"code": "insufficient_quota"}}'
  ]
  it("never stop a run, whatever they repeat.", () => {
    for (const text of hostile) {
      const bodies = [
        message(text),
        { detail: [{ loc: ["body"], msg: text, input: text }] },
        { message: text },
        text,
        openRouter(text),
        openRouter({ error: { message: text, code: "insufficient_quota" } }),
        message("No.", { param: text, innererror: { code: "insufficient_quota" } })
      ]
      for (const body of bodies) {
        for (const status of [400, 413, 422]) expect([text, reasonOf(status, body)]).toEqual([text, "BadRequest"])
        expect(reasonOf(429, body)).toBe("RateLimited")
        expect(reasonOf(0, body)).toBe("Overloaded")
        expect(reasonOf(503, body)).toBe("Overloaded")
      }
    }
  })
  it("cost little, however long and strange they are.", () => {
    const texts = ["prompt ", "exceeds the ", "`inputs` ", "account ", "model: acme/large-1 ", "\u0000", "<"]
    const before = performance.now()
    for (const text of texts) {
      for (const status of [400, 403, 413])
        reasonOf(status, message(text.repeat(500_000), { code: text.repeat(100_000) }))
    }
    expect(performance.now() - before).toBeLessThan(3000)
  })
})

describe("A connection", () => {
  const failed = (code: string, more: object = {}) => Object.assign(new Error("failed"), { code, ...more })
  it.each([
    "ECONNREFUSED",
    "ENOTFOUND",
    "EAI_AGAIN",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "ETIMEDOUT",
    "UND_ERR_CONNECT_TIMEOUT",
    "CERT_HAS_EXPIRED",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "SELF_SIGNED_CERT_IN_CHAIN",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "ERR_SSL_WRONG_VERSION_NUMBER",
    "UND_ERR_PRX_TLS"
  ])("was never there with %s.", (code) => {
    expect(Failure.neverConnected(failed(code, { syscall: "connect" }))).toBe(true)
  })
  it("was never there when TLS or a proxy would not have it.", () => {
    expect(Failure.neverConnected(failed("EPROTO", { syscall: "write" }))).toBe(true)
    const early = new Error("Client network socket disconnected before secure TLS connection was established")
    expect(Failure.neverConnected(Object.assign(early, { code: "ECONNRESET" }))).toBe(true)
  })
  it.each(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "HPE_INVALID_CONSTANT", ""])(
    "broke with %s.",
    (code) => {
      expect(Failure.neverConnected(failed(code))).toBe(false)
    }
  )
  it("broke when it was read from or written to.", () => {
    for (const syscall of ["read", "write"])
      expect(Failure.neverConnected(failed("ETIMEDOUT", { syscall }))).toBe(false)
  })
})
