/** What a model may have meant by lines that are not in a file: the lines that are most like them. */
import * as Content from "./Content.ts"

const around = 3
const compared = 200

/** The lines around the one most like the longest of `wanted`, numbered; empty when nothing is like it. */
export const show = (text: string, wanted: string): string => {
  const all = Content.lines(text)
  const wantedLines = wanted.split("\n").slice(0, 1000)
  let place = 0
  for (const [at, line] of wantedLines.entries()) {
    if (usable(line).length > usable(wantedLines[place] ?? "").length) place = at
  }
  const best = closest(all, usable(wantedLines[place] ?? ""))
  if (best === undefined) return ""
  const from = Math.max(0, best - Math.min(place, around) - 1)
  const shown = all.slice(from, best + around + 1).map((line, at) => {
    const cut = line.length > compared ? `${line.slice(0, compared)}…` : line.replace(/\r$/, "")
    return `${String(from + at + 1).padStart(6)}|${cut}`
  })
  return shown.join("\n")
}

const usable = (line: string): string => line.trim().slice(0, compared)

/** Letter pairs in common decide; a table of flags keeps this one pass over the text. */
const closest = (all: ReadonlyArray<string>, wanted: string): number | undefined => {
  if (wanted.length < 2) return undefined
  const flags = new Uint8Array(65536)
  for (let at = 0; at + 1 < wanted.length; at++) flags[pair(wanted, at)] = 1
  let best: number | undefined
  let bestScore = 0.5
  for (const [index, line] of all.entries()) {
    const own = usable(line)
    let shared = 0
    for (let at = 0; at + 1 < own.length; at++) shared += flags[pair(own, at)] ?? 0
    const score = shared / (Math.max(own.length, wanted.length) - 1)
    if (score > bestScore) {
      bestScore = score
      best = index
    }
  }
  return best
}

const pair = (text: string, at: number): number => (text.charCodeAt(at) * 31 + text.charCodeAt(at + 1)) & 0xffff
