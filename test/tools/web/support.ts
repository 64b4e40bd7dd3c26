/** The web tools as a session calls them, with addresses of this machine that count as public. */
import { Effect } from "effect"
import * as Invoke from "../../../src/tools/Invoke.ts"
import * as Guard from "../../../src/tools/net/Guard.ts"
import * as Setting from "../../../src/tools/Setting.ts"
import * as Toolset from "../../../src/tools/Toolset.ts"
import * as Variables from "../../../src/tools/Variables.ts"
import * as Web from "../../../src/tools/Web.ts"
import { inSandbox, type Used } from "../support.ts"

export interface Place extends Partial<Setting.Setting> {
  readonly environment?: Readonly<Record<string, string>>
  readonly guard?: Guard.Guard
}

/** Only 127.0.0.2 counts as public. */
const usual = Guard.make({
  allowPrivate: false,
  permits: (address) => address === "127.0.0.2",
  resolve: async (host) => [{ address: host.startsWith("open") ? "127.0.0.2" : "127.0.0.1", family: 4 }]
})

const toolset = ({ environment = {}, guard = usual, ...said }: Place) =>
  Effect.map(Web.makeWith(Setting.make({ ...said, variables: Variables.from(environment) }), guard), (tools) =>
    Toolset.make({ name: "web", description: "", tools })
  )

/** Calls one after the other, with the same tools. */
export const calls = (place: Place, ...all: ReadonlyArray<readonly [name: string, args: object]>) =>
  inSandbox(
    Effect.scoped(
      Effect.flatMap(toolset(place), ({ tools }) =>
        Effect.forEach(all, ([name, args]) =>
          Effect.map(
            Invoke.call(tools, { name, arguments: JSON.stringify(args) }),
            (invoked): Used => ({ ...invoked, result: JSON.parse(invoked.text) })
          )
        )
      )
    )
  )

export const call = async (name: string, args: object, place: Place = {}): Promise<Used> => {
  const [used] = await calls(place, [name, args])
  if (used === undefined) throw new Error("no call")
  return used
}

/** Reads pages. */
export const extract = (urls: ReadonlyArray<string>, place: Place = {}) => call("web_extract", { urls }, place)

/** The contents of any number of pages, or their errors. */
export const contents = async (urls: ReadonlyArray<string>, place: Place = {}): Promise<ReadonlyArray<string>> => {
  const fives = urls.flatMap((_, at) => (at % 5 === 0 ? [urls.slice(at, at + 5)] : []))
  const all = await calls(place, ...fives.map((some) => ["web_extract", { urls: some }] as const))
  return all.flatMap(({ result }) =>
    result.results.map(({ content, error }: { content: string; error: string }) =>
      error === "" ? content : `error: ${error}`
    )
  )
}

/** What there is of the toolset. */
export const built = (place: Place) => Effect.runPromise(Effect.scoped(toolset(place)))

/** A PDF with a line of text on each page. */
export const pdf = (title: string, lines: ReadonlyArray<string>): Buffer => {
  const kids = lines.map((_, at) => `${4 + at * 2} 0 R`).join(" ")
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ...lines.flatMap((line, at) => {
      const drawn = `BT /F1 12 Tf 50 700 Td (${line}) Tj ET`
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents ${5 + at * 2} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
        `<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`
      ]
    }),
    `<< /Title (${title}) >>`
  ]
  let text = "%PDF-1.4\n"
  const offsets = objects.map((object, at) => {
    const offset = text.length
    text += `${at + 1} 0 obj\n${object}\nendobj\n`
    return `${String(offset).padStart(10, "0")} 00000 n \n`
  })
  const start = text.length
  text += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join("")}`
  text += `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R /Info ${objects.length} 0 R >>\nstartxref\n${start}\n%%EOF\n`
  return Buffer.from(text, "latin1")
}
