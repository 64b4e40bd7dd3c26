/** The data set card: a README.md whose head tells Hugging Face's loader the file and its exact types. */

/** A field's type, as the card's YAML spells it. */
type Feature =
  | { readonly dtype: "string" | "int64" | "float64" | "bool" }
  | { readonly list: Feature }
  | { readonly struct: ReadonlyArray<readonly [name: string, feature: Feature]> }

const text: Feature = { dtype: "string" }
const count: Feature = { dtype: "int64" }
const flag: Feature = { dtype: "bool" }
const money: Feature = { dtype: "float64" }
const struct = (...fields: ReadonlyArray<readonly [string, Feature]>): Feature => ({ struct: fields })
const list = (feature: Feature): Feature => ({ list: feature })

/** The fields of a row, in its order. */
const features = (toolNames: ReadonlyArray<string>): ReadonlyArray<readonly [string, Feature]> => [
  ["prompt_index", count],
  [
    "conversations",
    list(
      struct(
        ["from", text],
        ["value", text],
        [
          "tool_calls",
          list(struct(["id", text], ["type", text], ["function", struct(["name", text], ["arguments", text])]))
        ],
        ["tool_call_id", text],
        ["name", text]
      )
    )
  ],
  [
    "metadata",
    struct(
      ["batch_num", count],
      ["timestamp", text],
      ["model", text],
      ["image", text],
      ["cwd", text],
      ["default_image", flag],
      ["default_cwd", flag],
      ["sample", count],
      ["occurrence", count],
      ["shortened", count],
      [
        "usage",
        struct(
          ["prompt", count],
          ["completion", count],
          ["reasoning", count],
          ["cached", count],
          ["total", count],
          ["cost_usd", money]
        )
      ]
    )
  ],
  ["completed", flag],
  ["partial", flag],
  ["api_calls", count],
  ["toolsets_used", list(text)],
  [
    "tool_stats",
    struct(
      ...toolNames.map((name) => [name, struct(["count", count], ["success", count], ["failure", count])] as const)
    )
  ],
  ["tool_error_counts", struct(...toolNames.map((name) => [name, count] as const))],
  ["tools", text],
  ["system", text],
  ["source", text]
]

const fieldLines = (name: string, feature: Feature, indent: string): ReadonlyArray<string> => [
  `${indent}- name: ${JSON.stringify(name)}`,
  ...typeLines(feature, `${indent}  `)
]

const typeLines = (feature: Feature, indent: string): ReadonlyArray<string> => {
  if ("dtype" in feature) return [`${indent}dtype: ${feature.dtype}`]
  if ("struct" in feature)
    return [`${indent}struct:`, ...feature.struct.flatMap(([name, part]) => fieldLines(name, part, indent))]
  return "dtype" in feature.list
    ? [`${indent}list: ${feature.list.dtype}`]
    : "struct" in feature.list
      ? [`${indent}list:`, ...feature.list.struct.flatMap(([name, part]) => fieldLines(name, part, indent))]
      : [`${indent}list:`, ...typeLines(feature.list, `${indent}  `)]
}

/** What the card tells people. */
export interface About {
  readonly runName: string
  readonly model: string
  readonly distribution: string
  readonly rows: number
  /** Every tool that rows count, in their order. */
  readonly toolNames: ReadonlyArray<string>
}

/** The whole file. */
export const make = (about: About): string =>
  `${[
    "---",
    `pretty_name: ${JSON.stringify(about.runName)}`,
    "tags:",
    "- agent",
    "- tool-use",
    "- sharegpt",
    "configs:",
    "- config_name: default",
    "  data_files:",
    "  - split: train",
    "    path: trajectories.jsonl",
    "dataset_info:",
    "  features:",
    ...features(about.toolNames).flatMap(([name, feature]) => fieldLines(name, feature, "  ")),
    "---",
    "",
    `# ${about.runName}`,
    "",
    `${about.rows} agent sessions of ${about.model}, with the toolsets of the distribution ${about.distribution}, one a row of`,
    "`trajectories.jsonl`, made with batch-runner.",
    "",
    "- `conversations`: ShareGPT turns (`human`, `gpt`, `tool`). Reasoning stands in front of a `gpt` turn in `<think>` tags;",
    "  `function.arguments` is JSON text.",
    "- `system` and `tools`: the system prompt and the tool definitions (JSON text) that the model was given.",
    "- `completed`: the model gave a final answer. `partial`: the session was cut by invalid calls or a truncated answer.",
    "- `tool_stats`, `tool_error_counts`: calls, successes and failures of every tool.",
    "- `source`: the other fields of the prompt's own row (JSON text).",
    "",
    "```python",
    "from datasets import load_dataset",
    "",
    `rows = load_dataset("path/to/${about.runName}", split="train")`,
    "```"
  ].join("\n")}\n`
