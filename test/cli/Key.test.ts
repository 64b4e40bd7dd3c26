/** The key of an endpoint goes to that endpoint alone, and is never shown. */
import { Either, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { type Given, parse } from "./typed.ts"

describe("The key", () => {
  const all = { OPENROUTER_API_KEY: "router", BATCH_RUNNER_API_KEY: "ours", OPENAI_API_KEY: "openai" }
  const key = (given: Given, environment: Readonly<Record<string, string>>) =>
    Either.match(parse({ model: "m", ...given }, environment), {
      onLeft: ({ message }) => message,
      onRight: ({ apiKey }) => (apiKey === undefined ? "none" : Redacted.value(apiKey))
    })
  const elsewhere = { base_url: "https://api.example.com/v1" }

  it("of the default endpoint is OpenRouter's, else ours, and never OpenAI's.", () => {
    expect(key({}, all)).toBe("router")
    expect(key({}, { ...all, OPENROUTER_API_KEY: "" })).toBe("ours")
    expect(key({}, { OPENAI_API_KEY: "openai" })).toBe(
      "no API key for openrouter.ai: set OPENROUTER_API_KEY or BATCH_RUNNER_API_KEY, or give --api_key; `batch-runner setup` keeps one, --model=scripted needs none"
    )
    expect(key({ base_url: "https://openrouter.ai/api/v1/" }, { OPENAI_API_KEY: "openai" })).toMatch(/^no API key/)
  })
  it("of another endpoint is ours, else OpenAI's, and never OpenRouter's.", () => {
    expect(key(elsewhere, all)).toBe("ours")
    expect(key(elsewhere, { ...all, BATCH_RUNNER_API_KEY: " " })).toBe("openai")
    expect(key(elsewhere, { OPENROUTER_API_KEY: "router" })).toMatch(
      /^no API key for api\.example\.com: set BATCH_RUNNER_API_KEY or OPENAI_API_KEY, /
    )
    expect(key({ base_url: "https://openrouter.ai.evil.com/v1" }, { OPENROUTER_API_KEY: "router" })).toMatch(
      /^no API key/
    )
  })
  it("may be given by hand, and an empty one is none.", () => {
    expect(key({ api_key: " mine " }, all)).toBe("mine")
    expect(key({ api_key: "" }, all)).toBe("router")
  })
  it("is not needed on this machine, nor by the offline model.", () => {
    for (const base_url of [
      "http://localhost:1/v1",
      "http://127.0.0.1/v1",
      "http://127.9.9.9/v1",
      "http://[::1]:8/v1",
      "http://x.localhost/v1"
    ]) {
      expect(key({ base_url }, {})).toBe("none")
    }
    for (const base_url of [
      "http://127.0.0.1.example.com/v1",
      "http://localhost.example.com/v1",
      "http://10.0.0.1/v1"
    ]) {
      expect(key({ base_url }, {})).toMatch(/^no API key/)
    }
    expect([key({ model: "scripted" }, all), key({ model: "scripted:x.json" }, {})]).toEqual(["none", "none"])
    expect(key({ model: "scripted-not" }, {})).toMatch(/^no API key/)
  })
  it("with characters that no key has is refused without being shown.", () => {
    for (const given of ["a b", "schlüssel", "x\ny"]) {
      const message = key({ api_key: given }, {})
      expect(message).toMatch(/^--api_key: the key holds characters that no key has/)
      expect(message).not.toContain(given)
    }
  })
  it("does not show where the request is printed.", () => {
    const request = Either.getOrThrowWith(parse({ model: "m" }, all), (error) => error)
    expect(JSON.stringify(request) + String(request.apiKey)).not.toContain('router"')
  })
})
