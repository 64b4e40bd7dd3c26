/** Runs against a server under fire: data sets of plain prompts, the cheapest tools, and what is expected of how they end. */
import { expect, onTestFinished } from "vitest"
import { type Ended, type Options, Workplace } from "./Command.ts"
import { type Ledger, nanoOf } from "./FireRecord.ts"

/** What every run here is given. */
export const cheap: Options = { distribution: "todo.json", sandbox: "local", batch_size: 50 }

export const named = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, at) => `prompt ${at}`)

/** A folder with a data set and a distribution of the one tool that starts no process. */
export const prepare = (
  prompts: ReadonlyArray<string>,
  whenFinished: typeof onTestFinished = onTestFinished
): Workplace => {
  const place = new Workplace(whenFinished)
  place.dataset(prompts)
  place.write("todo.json", JSON.stringify({ toolsets: { todo: 100 } }))
  return place
}

/** Expects each prompt to have one row, in the order of the data set. */
export const expectSaved = (place: Workplace, prompts: ReadonlyArray<string>): void => {
  expect(place.rows().map((row) => row.conversations[0]?.value)).toEqual(prompts)
  expect(place.rows().map((row) => row.prompt_index)).toEqual(prompts.map((_, at) => at))
  expect(place.batchRows().length).toBe(prompts.length)
}

/** Expects a run that was begun and could not go on: exit 1, nothing failed, and one line that says why. */
export const expectHalted = (place: Workplace, ended: Ended, says: RegExp): void => {
  expect(ended.code, ended.stderr.slice(-1000)).toBe(1)
  const told = saying(ended, says)
  expect(told.length, `lines of ${says} in: ${ended.stderr.slice(-1000)}`).toBe(1)
  expect(ended.stderr).not.toMatch(/^\s+at /m)
  expect(place.failures()).toEqual([])
}

/** Lines of standard error beside progress that say something. */
export const saying = ({ stderr }: Pick<Ended, "stderr">, says: RegExp): ReadonlyArray<string> =>
  stderr.split("\n").filter((line) => says.test(line) && !/^(?:\[.*\] )?done \d/.test(line))

/** What a run has said on standard error so far. */
export const hearing = (running: {
  readonly child: { readonly stderr: NodeJS.ReadableStream | null }
}): (() => string) => {
  let heard = ""
  running.child.stderr?.on("data", (text) => {
    heard += String(text)
  })
  return () => heard
}

/** Expects the run's figures to be those of the server's books. */
export const expectAgreed = (place: Workplace, ledger: Ledger): void => {
  const statistics = place.json("statistics.json")
  expect(nanoOf(statistics.cost_usd ?? 0)).toBe(ledger.nano)
  expect(statistics.tokens).toMatchObject({ total: ledger.tokens })
}
