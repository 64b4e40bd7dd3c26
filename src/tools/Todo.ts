/** The agent's own task list: one per session, kept in memory, given back whole. */
import { Context, type Ref } from "effect"

export interface TodoItem {
  readonly id: string
  readonly content: string
  readonly status: "pending" | "in_progress" | "completed" | "cancelled"
}

/** The list of one session. */
export class Todos extends Context.Tag("batch-runner/Todos")<Todos, Ref.Ref<ReadonlyArray<TodoItem>>>() {}
