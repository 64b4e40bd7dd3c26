/** File-name patterns as models write them, in the form that `find` knows. */
import * as Shell from "../Shell.ts"

const maxAlternatives = 64

/** A test of `find`: the name matches one of the pattern's alternatives; empty for no pattern. */
export const test = (glob: string): string => {
  if (glob === "") return ""
  const tests = alternatives(glob).map((one) =>
    one.includes("/") ? `-path ${Shell.quote(`./${one.replace(/^(\.?\/)+/, "")}`)}` : `-name ${Shell.quote(one)}`
  )
  return `\\( ${tests.join(" -o ")} \\)`
}

/** `a.{ts,js}` as two patterns, a folder pattern `**` with and without a folder between. */
const alternatives = (glob: string): ReadonlyArray<string> => {
  let all = [glob]
  for (let round = 0; round < 20; round++) {
    const next = all.flatMap(split)
    if (next.length === all.length || next.length > maxAlternatives) break
    all = next
  }
  return all.map((one) => one.replaceAll("**", "*"))
}

const split = (glob: string): ReadonlyArray<string> => {
  const braces = /\{([^{}]*,[^{}]*)\}/.exec(glob)
  if (braces !== null) {
    const after = glob.slice(braces.index + braces[0].length)
    return (braces[1] ?? "").split(",").map((one) => glob.slice(0, braces.index) + one + after)
  }
  const deep = /(^|\/)\*\*\//.exec(glob)
  if (deep === null) return [glob]
  const before = glob.slice(0, deep.index) + (deep[1] ?? "")
  const after = glob.slice(deep.index + deep[0].length)
  return [before + after, `${before}*/${after}`]
}
