/** What decides a run is written down without its secrets, and a change of it does not go unsaid. */
import { describe, expect, it } from "vitest"
import * as RunConfig from "../../src/RunConfig.ts"
import * as Recorded from "../../src/store/Recorded.ts"

const make = (more: Partial<RunConfig.Settings> = {}) =>
  RunConfig.make({ dataset_file: "d.jsonl", batch_size: 10, run_name: "r", ...more })

describe("The record of a configuration", () => {
  it("has every setting but the texts that are saved nowhere.", () => {
    const recorded = Recorded.recorded(
      make({ ephemeral_system_prompt: "SECRET", prefill_messages: [{ role: "user", content: "SECRET" }] })
    )
    expect(JSON.stringify(recorded)).not.toContain("SECRET")
    const left = Object.keys(make()).filter((name) => !(name in recorded))
    expect(left.toSorted()).toEqual(["ephemeral_system_prompt", "prefill_messages"])
  })
  it("tells a text that is saved nowhere from another one.", () => {
    const before = make({ ephemeral_system_prompt: "SECRET" })
    const told = (now: RunConfig.Settings) => Recorded.changes(Recorded.recorded(before), now)
    expect(told(before)).toEqual([])
    expect(told(make())).toEqual(["ephemeral_system_prompt: given before, not now"])
    expect(
      told(make({ ephemeral_system_prompt: "other", prefill_messages: [{ role: "user", content: "x" }] }))
    ).toEqual(["ephemeral_system_prompt: another one than before", "prefill_messages: not given before"])
  })
  it.each([
    ["https://user:pass@host:8000/v1", "https://host:8000/v1"],
    ["https://user:p@ss@host/v1", "https://host/v1"],
    ["https://token@host", "https://host"],
    ["https://host/v1?key=pass", "https://host/v1"],
    ["https://host/a@b/v1", "https://host/a@b/v1"],
    ["http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"]
  ])("has no password of an address: %s becomes %s.", (given, written) => {
    expect(Recorded.recorded(make({ base_url: given })).base_url).toBe(written)
  })
})

describe("Changes between two sessions", () => {
  it("are those that alter the data, each with what it was and what it is.", () => {
    const before = Recorded.recorded(make({ model: "a", seed: 1, providers_order: ["x"] }))
    const now = make({ model: "b", seed: 1, cwd: "/w", num_workers: 99, timeout: 1, verbose: true, batch_size: 3 })
    expect(Recorded.changes(before, now)).toEqual(["model: a → b", 'providers_order: ["x"] → []', 'cwd: "" → /w'])
    expect(Recorded.changes(Recorded.recorded(now), now)).toEqual([])
  })
  it("show no password, and nothing of a setting that the record does not have.", () => {
    const before = Recorded.recorded(make({ base_url: "https://u:p@a/v1" }))
    expect(Recorded.changes(before, make({ base_url: "https://u:p@b/v1" }))).toEqual([
      "base_url: https://a/v1 → https://b/v1"
    ])
    expect(Recorded.changes({}, make({ model: "b" }))).toEqual([])
  })
})

describe("What is sent to the endpoint", () => {
  it("has the reasoning effort, or none, or nothing said of it.", () => {
    expect(RunConfig.reasoningSent(make())).toBeUndefined()
    expect(RunConfig.reasoningSent(make({ reasoning_effort: "high" }))).toEqual({ effort: "high" })
    expect(RunConfig.reasoningSent(make({ reasoning_effort: "high", reasoning_disabled: true }))).toEqual({
      effort: "none"
    })
  })
  it("has only the routing that was asked for.", () => {
    expect(RunConfig.providerSent(make())).toBeUndefined()
    expect(RunConfig.providerSent(make({ providers_order: ["a", "b"] }))).toEqual({ order: ["a", "b"] })
    expect(
      RunConfig.providerSent(
        make({ providers_allowed: ["a"], providers_ignored: ["b"], providers_order: ["c"], provider_sort: "price" })
      )
    ).toEqual({ only: ["a"], ignore: ["b"], order: ["c"], sort: "price" })
  })
})

describe("The reasoning filter", () => {
  it.each<readonly [Partial<RunConfig.Settings>, boolean]>([
    [{}, true],
    [{ reasoning_effort: "low" }, true],
    [{ reasoning_effort: "none" }, false],
    [{ reasoning_disabled: true, reasoning_effort: "high" }, false],
    [{ reasoning_filter: "off" }, false],
    [{ reasoning_filter: "on", reasoning_disabled: true }, true]
  ])("with %j is on: %s.", (settings, on) => {
    expect(RunConfig.filtersReasoning(make(settings))).toBe(on)
  })
})
