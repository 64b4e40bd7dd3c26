/** A thread that reads documents, one at a time: whatever one does to it, the program goes on. */
import { parentPort } from "node:worker_threads"
import * as Reading from "./Reading.ts"

/** What the thread answers. */
export type Answer = { readonly page: Reading.Page } | { readonly error: string }

const words = (error: unknown): string => (error instanceof Error ? error.message : String(error)).slice(0, 500)

parentPort?.on("message", (source: Reading.Source) => {
  Reading.read(source).then(
    (page) => parentPort?.postMessage({ page } satisfies Answer),
    (error: unknown) => parentPort?.postMessage({ error: words(error) } satisfies Answer)
  )
})
