/** How the tools of MCP servers are called among those of a run: `mcp_<server>_<tool>`, in the letters that every API takes. */
import { hash } from "node:crypto"

/** Letters of a tool's name at most. */
const longest = 64

const plain = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, "_")

/** The same name for the same tool, whatever others there are: what does not fit ends in a digest of the tool's own name. */
const digested = (name: string, tool: string): string =>
  `${name.slice(0, longest - 9)}_${hash("sha1", tool, "hex").slice(0, 8)}`

/** A name for each tool of a server, none of them among `taken`, to which they are added; a tool that is named twice has one. */
export const offered = (
  server: string,
  tools: ReadonlyArray<string>,
  taken: Set<string>
): ReadonlyMap<string, string> => {
  const names = new Map<string, string>()
  const give = (tool: string, name: string) => {
    names.set(tool, name)
    taken.add(name)
  }
  // Those that are as they should be come first: no other may take their names.
  for (const exact of [true, false]) {
    for (const tool of tools) {
      if (names.has(tool) || (plain(tool) === tool) !== exact) continue
      const name = `mcp_${server}_${plain(tool)}`
      const free = name.length <= longest && !taken.has(name) ? name : digested(name, tool)
      if (!taken.has(free)) give(tool, free)
    }
  }
  return names
}
