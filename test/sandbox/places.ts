/** Sandboxes without anything in them, whose making and end are noted. */
import { Effect } from "effect"
import { SandboxError, type Sandboxes, type SandboxService } from "../../src/sandbox/Sandbox.ts"

type Service = typeof Sandboxes.Service

const nothing = new SandboxError({ reason: "Lost", detail: "there is nothing in it" })

export const box: SandboxService = {
  cwd: "/",
  exec: () => nothing,
  start: () => nothing,
  started: Effect.succeed([]),
  read: () => nothing,
  write: () => nothing
}

export const spec = (at = 0) => ({ id: `t${at}`, image: "x", cwd: "" })

/** `start` runs in each opening, with the sandbox made; `end` in each release, before it is gone. */
export const place = (
  start: (id: string) => Effect.Effect<unknown, SandboxError> = () => Effect.void,
  end: (id: string) => Effect.Effect<unknown> = () => Effect.void
) => {
  const notes: Array<string> = []
  const count = { now: 0, most: 0 }
  const note = (text: string, by: number) =>
    Effect.sync(() => {
      notes.push(text)
      count.now += by
      count.most = Math.max(count.most, count.now)
    })
  const open: Service["open"] = ({ id }) =>
    Effect.acquireRelease(note(`made ${id}`, 1), () => Effect.zipRight(end(id), note(`gone ${id}`, -1))).pipe(
      Effect.zipRight(start(id)),
      Effect.as(box)
    )
  const sandboxes: Service = { open }
  return { sandboxes, notes, count }
}
