/** The folder of a run, loaded by Hugging Face's own library. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, describe, expect, it } from "vitest"
import * as Rows from "./support/Rows.ts"

const python = process.env.DATASETS_PYTHON ?? ""
const command = fileURLToPath(new URL("../bin/batch-runner.js", import.meta.url))
const example = fileURLToPath(new URL("../data/prompts.jsonl", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "batch-runner-datasets-"))

if (python === "" && process.env.CI === undefined) {
  console.warn("Hugging Face tests are left out: set DATASETS_PYTHON to a Python that has the datasets package")
}

const load = `
import json, sys
from datasets import load_dataset
rows = load_dataset(sys.argv[1], split="train")
print(json.dumps({"rows": rows.num_rows, "fields": list(rows.features), "tool_stats": list(rows.features["tool_stats"]), "types": str(rows.features["toolsets_used"]),
  "index": rows["prompt_index"][:], "values": [row["conversations"][0]["value"] for row in rows]}))
`

/** Runs the command, then loads its folder with `datasets`. */
const loaded = (name: string, args: ReadonlyArray<string>) => {
  execFileSync(process.execPath, [command, "--batch_size=2", `--run_name=${name}`, `--output_dir=${folder}`, ...args], {
    stdio: "ignore"
  })
  const environment = {
    ...process.env,
    HF_HUB_OFFLINE: "1",
    HF_HOME: join(folder, "home"),
    HF_DATASETS_DISABLE_PROGRESS_BARS: "1"
  }
  return JSON.parse(execFileSync(python, ["-c", load, join(folder, name)], { encoding: "utf8", env: environment }))
}

describe.skipIf(python === "" && process.env.CI === undefined)("load_dataset on a run folder", () => {
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("gives every row with the declared fields", { timeout: 120_000 }, () => {
    const rows = loaded("example", [`--dataset_file=${example}`, "--model=scripted"])
    expect(rows.index).toEqual([0, 1, 2, 3, 4, 5])
    expect(rows.fields).toEqual(Rows.rowKeys)
    expect(rows.tool_stats).toContain("web_search")
  })

  it("gives back text that is hard on loaders: line separators, lone surrogates, NUL", { timeout: 120_000 }, () => {
    const dataset = join(folder, "odd.jsonl")
    const texts = ["a\u2028b\u2029c", "nul \u0000 here", "emoji 👍 and é"]
    const lines = [...texts.map((prompt) => JSON.stringify({ prompt })), '{"prompt": "lone \\ud800 surrogate"}']
    writeFileSync(dataset, `${lines.join("\n")}\n`)
    const rows = loaded("odd", [`--dataset_file=${dataset}`, "--model=scripted"])
    expect(rows.values).toEqual([...texts, "lone \ufffd surrogate"])
  })
})
