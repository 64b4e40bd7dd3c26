/** The options of `setup` and `doctor`, and their help. */
import { settable } from "../ConfigFile.ts"
import { type Flag, flags as ofRun } from "../Flags.ts"
import { line } from "../Help.ts"
import * as Known from "./Known.ts"

const toggle = (name: string, help: string): Flag => ({ name, kind: "switch", takes: "", help })
const value = (name: string, takes: string, help: string): Flag => ({ name, kind: "value", takes, help })

const own: ReadonlyArray<Flag> = [
  toggle("portal", "Nous Portal: its endpoint, and one key for all"),
  toggle("non_interactive", "Ask nothing: what is to be set is given here"),
  value("api_key", "key", "Key of the endpoint; better by --api_key_stdin or --from_env, as others see command lines"),
  toggle("api_key_stdin", "Read the endpoint's key from standard input"),
  value("gateway_token", "key", "With --portal: the token of its tools (default: its key)"),
  toggle("from_env", "Keep the variables below that the environment holds"),
  toggle("offline", "Try nothing afterwards")
]

/** Options of `setup`: its own, the defaults of a run, and variables. */
export const setup: ReadonlyArray<Flag> = [...own, ...settable, ...Known.flags]

const looks: ReadonlyArray<Flag> = [
  toggle("offline", "Look at nothing beyond this machine"),
  toggle("json", "Print what was found as JSON")
]

/** Options of `doctor`: its own, and all of a run, so that a run's command line can be looked at as it is. */
export const doctor: ReadonlyArray<Flag> = [...looks, ...ofRun]

/** The help of `setup`. */
export const setupHelp: string = [
  "batch-runner setup: asks for the endpoint, its key and what tools use, keeps the answers in the config file and tries each",
  "",
  "  batch-runner setup                         Asks on the terminal; what is not answered stays as it is",
  "  batch-runner setup --portal                Nous Portal: asks for its key alone, then for tools",
  "  batch-runner setup --non_interactive --from_env --model=<id>",
  "  batch-runner setup --non_interactive --portal --api_key_stdin < key.txt",
  "",
  "The file is $XDG_CONFIG_HOME/batch-runner/config.json, else ~/.config/batch-runner/config.json; only its owner can read it.",
  "A run takes what is typed, else the environment, else this file. An empty value (--brave_api_key=) takes away what is there.",
  "With --portal and no --model: the default model where the portal lists it, else the first Hermes, else the first of its list.",
  "",
  "Options",
  ...own.map(line),
  "",
  "Keys and addresses",
  ...Known.flags.map(line),
  "",
  `Defaults of a run, as \`batch-runner --help\` explains them: ${settable.map(({ name }) => name).join(", ")}`,
  "",
  "Exit status: 0 all that was tried works; 1 some does not (the file is written all the same); 2 nothing was written."
].join("\n")

/** The help of `doctor`. */
export const doctorHelp: string = [
  "batch-runner doctor: shows what works here, toolset by toolset, and what each lacks; nothing is run, paid or written",
  "",
  "Options: those of a run, such as --base_url, --model, --sandbox or --mcp_config, and",
  ...looks.map(line),
  "",
  "ok works; -- is not there, or was not looked at; !! keeps runs from working as configured.",
  "Exit status: 0 a run can begin: an endpoint (or --model=scripted) and a sandbox; 1 it cannot; 2 bad usage."
].join("\n")
