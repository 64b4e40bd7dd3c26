/** The help as a person reads it: how to start, every option on a line of its own, and what the exit status says. */
import { version } from "../version.ts"
import { type Flag, flags } from "./Flags.ts"

const required = new Set(["dataset_file", "batch_size", "run_name"])

const spelled = ({ name, kind, takes }: Flag): string => `--${name}${kind === "switch" ? "" : `=<${takes}>`}`

/** An option on a line of its own. */
export const line = (flag: Flag): string => {
  const head = spelled(flag)
  return head.length > 30 ? `  ${head}\n${" ".repeat(34)}${flag.help}` : `  ${head.padEnd(32)}${flag.help}`
}

/** The help of `clean`. */
export const clean: string = [
  "batch-runner clean: removes the containers, sandboxes, processes and folders that killed runs left on this machine.",
  "What belongs to runs that are alive stays. The next run on this machine does the same while it works."
].join("\n")

export const text: string = [
  `batch-runner ${version}: runs prompts through agent sessions, many at once, and leaves their trajectories as data`,
  "",
  "  batch-runner --dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_first_run",
  "  batch-runner --dataset_file=data/prompts.jsonl --batch_size=10 --run_name=my_first_run --resume",
  "  batch-runner --list_distributions",
  "  batch-runner setup              Ask for endpoint, keys and tools, and keep them (setup --help)",
  "  batch-runner doctor             Show what works here and what is lacking (doctor --help)",
  "  batch-runner clean              Remove what killed runs left on this machine",
  "",
  "Required",
  ...flags.filter(({ name }) => required.has(name)).map(line),
  "",
  "Options (--name=value or --name value; dashes work in place of underscores)",
  ...flags.filter(({ name }) => !required.has(name)).map(line),
  "  --completions=<bash|zsh|fish>   Print a completion script for a shell and end",
  "  --version, --help               Print the version, or this, and end",
  "",
  "Exit status: 0 every prompt is done; 1 prompts are left (--resume goes on); 2 nothing was started;",
  "130 / 143 interrupted. Results lie under data/<run_name>/."
].join("\n")
