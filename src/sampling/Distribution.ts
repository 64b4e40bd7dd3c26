/** Distributions: how likely each toolset is switched on for a prompt. */

export interface Distribution {
  readonly name: string
  readonly description: string
  /** Percentages by toolset, 0 to 100, highest first. */
  readonly toolsets: ReadonlyArray<readonly [toolset: string, percent: number]>
}

const all = ["web", "vision", "image_gen", "terminal", "file", "moa", "browser"]

const make = (name: string, description: string, toolsets: ReadonlyArray<readonly [string, number]>): Distribution => ({
  name,
  description,
  toolsets: highestFirst(toolsets)
})

/** Equal percentages keep the order in which they were given. */
export const highestFirst = (
  toolsets: ReadonlyArray<readonly [string, number]>
): ReadonlyArray<readonly [string, number]> => toolsets.toSorted((a, b) => b[1] - a[1])

const evenly = (names: ReadonlyArray<string>, percent: number) => names.map((name) => [name, percent] as const)

/** The distributions that come with the program. */
export const builtIn: ReadonlyArray<Distribution> = [
  make("default", "the seven main toolsets, always", evenly(all, 100)),
  make("image_gen", "making pictures, with looking at them and some research", [
    ["image_gen", 90],
    ["vision", 90],
    ["web", 55],
    ["terminal", 45],
    ["moa", 10]
  ]),
  make("research", "reading the web, with a browser and second opinions", [
    ["web", 90],
    ["browser", 70],
    ["vision", 50],
    ["moa", 40],
    ["terminal", 10]
  ]),
  make("science", "scientific work: the web, a terminal and files", [
    ["web", 94],
    ["terminal", 94],
    ["file", 94],
    ["vision", 65],
    ["browser", 50],
    ["image_gen", 15],
    ["moa", 10]
  ]),
  make("development", "writing software, with some looking up", [
    ["terminal", 80],
    ["file", 80],
    ["moa", 60],
    ["web", 30],
    ["vision", 10]
  ]),
  make("safe", "everything that runs no commands", [
    ["web", 80],
    ["browser", 70],
    ["vision", 60],
    ["image_gen", 60],
    ["moa", 50]
  ]),
  make("balanced", "the seven main toolsets, each half of the time", evenly(all, 50)),
  make("minimal", "the web alone", [["web", 100]]),
  make("terminal_only", "a terminal and files", evenly(["terminal", "file"], 100)),
  make("terminal_web", "a terminal, files and the web", evenly(["terminal", "file", "web"], 100)),
  make("creative", "making and looking at pictures", [
    ["image_gen", 90],
    ["vision", 90],
    ["web", 30]
  ]),
  make("reasoning", "second opinions above all", [
    ["moa", 90],
    ["web", 30],
    ["terminal", 20]
  ]),
  make("browser_use", "a browser, with search and eyes", [
    ["browser", 100],
    ["web", 80],
    ["vision", 70]
  ]),
  make("browser_only", "a browser alone", [["browser", 100]]),
  make("browser_tasks", "tasks in a browser, rarely anything else", [
    ["browser", 97],
    ["terminal", 15],
    ["vision", 12]
  ]),
  make("terminal_tasks", "tasks in a terminal, with the web at hand", [
    ["terminal", 97],
    ["file", 97],
    ["web", 97],
    ["browser", 75],
    ["vision", 50],
    ["image_gen", 10]
  ]),
  make("mixed_tasks", "tasks in a browser and a terminal together", [
    ["browser", 92],
    ["terminal", 92],
    ["file", 92],
    ["web", 35],
    ["vision", 15],
    ["image_gen", 15]
  ])
]

/** Every distribution as a person reads it. */
export const render = (distributions: ReadonlyArray<Distribution>): string =>
  distributions
    .map(({ name, description, toolsets }) => {
      const percentages = toolsets.map(([toolset, percent]) => `${toolset} ${percent} %`).join(", ")
      return `${name}: ${description}\n    ${percentages}`
    })
    .join("\n")
