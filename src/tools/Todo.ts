/** The agent's own task list: one per session, kept in memory, given back whole. */
import { Effect, Ref, Schema } from "effect"
import * as Arguments from "./Arguments.ts"
import * as Tool from "./Tool.ts"
import { perSession } from "./ToolSession.ts"

const statuses = ["pending", "in_progress", "completed", "cancelled"] as const

export interface TodoItem {
  readonly id: string
  readonly content: string
  readonly status: (typeof statuses)[number]
}

/** The list of one session. */
const ofSession = perSession(Ref.make<ReadonlyArray<TodoItem>>([]))

/** An item as a model writes it; with merge, what it leaves out stays as it was. */
const Entry = Schema.Struct({
  id: Arguments.text("Short name of the task, unique in the list"),
  content: Schema.optional(
    Arguments.text("What is to be done; may be left out for a task that is in the list already")
  ),
  status: Schema.optional(Arguments.choice("How far it is; pending for a new task by default", ...statuses))
})

/** Reads or changes the task list. */
export const todo: Tool.Tool = Tool.make({
  name: "todo",
  description:
    "Your task list for this session. Without todos it gives the list. With todos it replaces the list, or with " +
    "merge=true changes the tasks with the same id and appends new ones. Keep at most one task in_progress.",
  parameters: Schema.Struct({
    todos: Schema.optional(Schema.Array(Entry).annotations({ description: "Tasks to write; leave out to read" })),
    merge: Schema.optional(Arguments.flag("true: change by id and append; false (default): replace the whole list"))
  }),
  run: Effect.fn("todo.run")(function* ({ todos, merge }) {
    const list = yield* ofSession.get
    if (todos !== undefined) {
      const next = merged(merge === true ? yield* Ref.get(list) : [], todos)
      const nameless = next.find((item) => item.content.trim() === "")
      if (nameless !== undefined) {
        return yield* new Tool.ToolFailure({
          error: `the task ${JSON.stringify(nameless.id.slice(0, 100))} is new: give its content. Nothing was changed.`
        })
      }
      yield* Ref.set(list, next)
    }
    const items = yield* Ref.get(list)
    return { todos: items, summary: summary(items) }
  })
})

const merged = (
  before: ReadonlyArray<TodoItem>,
  entries: ReadonlyArray<typeof Entry.Type>
): ReadonlyArray<TodoItem> => {
  const byId = new Map(before.map((item) => [item.id, item]))
  for (const { id, content, status } of entries) {
    const known = byId.get(id)
    byId.set(id, { id, content: content ?? known?.content ?? "", status: status ?? known?.status ?? "pending" })
  }
  return [...byId.values()]
}

const summary = (items: ReadonlyArray<TodoItem>) => {
  const count = (status: TodoItem["status"]) => items.filter((item) => item.status === status).length
  return {
    total: items.length,
    pending: count("pending"),
    in_progress: count("in_progress"),
    completed: count("completed"),
    cancelled: count("cancelled")
  }
}
