/** Names that a model may have meant when it named a file that is not there. */

/** At most five of the directory's names that are like the last part of `path`, each with the path's directory. */
export const paths = (path: string, names: ReadonlyArray<string>): ReadonlyArray<string> => {
  const slash = path.lastIndexOf("/") + 1
  const wanted = path.slice(slash).toLowerCase()
  return names
    .filter((name) => name !== "" && name !== "." && name !== ".." && name.length < 256)
    .map((name) => ({ name, score: likeness(wanted, name.toLowerCase()) }))
    .filter(({ score }) => score >= 0.5)
    .sort((a, b) => b.score - a.score)
    .slice(0, 5)
    .map(({ name }) => path.slice(0, slash) + name)
}

/** 1 for equal, above 0.5 for names of which one holds the other's stem or most of whose letter pairs are shared. */
const likeness = (a: string, b: string): number => {
  if (a === b) return 1
  if (stem(a).length > 1 && stem(a) === stem(b)) return 0.9
  const left = pairs(a)
  const right = pairs(b)
  let shared = 0
  for (const pair of left) if (right.has(pair)) shared++
  const dice = left.size + right.size === 0 ? 0 : (2 * shared) / (left.size + right.size)
  const inside = a.length > 2 && b.length > 2 && (a.includes(stem(b)) || b.includes(stem(a)))
  return inside ? Math.max(dice, 0.6) : dice
}

const stem = (name: string): string => name.replace(/(.)\.[^.]*$/, "$1")

const pairs = (name: string): Set<string> => {
  const found = new Set<string>()
  for (let at = 0; at + 1 < name.length; at++) found.add(name.slice(at, at + 2))
  return found
}
