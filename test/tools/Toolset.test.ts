import { Effect } from "effect"
import { expect, test } from "vitest"
import * as Catalogue from "../../src/tools/Catalogue.ts"
import * as Setting from "../../src/tools/Setting.ts"
import { inSandbox, put, tools, use } from "./support.ts"

const schemas = Object.fromEntries(tools.map((tool) => [tool.name, tool.definition.function.parameters]))

test("The catalogue holds every toolset, and every tool is known by name", async () => {
  const all = await Effect.runPromise(Effect.scoped(Catalogue.catalogue(Setting.make())))
  expect(all.map(({ name }) => name)).toEqual(Catalogue.names)
  expect(Catalogue.toolNames).toHaveLength(24)
  expect([...all.flatMap(({ toolNames }) => toolNames)].sort()).toEqual([...Catalogue.toolNames].sort())
  for (const { tools, missing, toolNames, lacks } of all) {
    if (lacks === null) {
      expect([...tools, ...missing].map(({ name }) => name).sort()).toEqual([...toolNames].sort())
      expect(tools).not.toEqual([])
    } else expect(tools).toEqual([])
  }
  expect(all.filter(({ lacks }) => lacks === null).map(({ name }) => name)).toEqual(
    expect.arrayContaining(["web", "terminal", "file", "moa", "todo", "code_execution"])
  )
})

test("A tool's schema is plain JSON Schema, as models know it", () => {
  expect(schemas.terminal).toEqual({
    type: "object",
    required: ["command"],
    properties: {
      command: { type: "string", description: "The command, as for bash -c" },
      timeout: {
        type: "integer",
        description: "Seconds to wait at most; 20 by default, which is also the most",
        minimum: 1
      },
      workdir: { type: "string", description: "Directory to run in; the session's working directory by default" },
      background: { type: "boolean", description: "true: do not wait, give a session_id for the tool process" }
    }
  })
  expect(schemas.todo).toMatchObject({
    type: "object",
    required: [],
    properties: {
      todos: {
        type: "array",
        items: {
          type: "object",
          required: ["id"],
          properties: { status: { type: "string", enum: ["pending", "in_progress", "completed", "cancelled"] } }
        }
      },
      merge: { type: "boolean" }
    }
  })
})

test("Every argument of every tool has a type and a description, and nothing refers elsewhere", () => {
  for (const schema of Object.values(schemas)) {
    expect(schema).toMatchObject({ type: "object", properties: {}, required: expect.any(Array) })
    expect(JSON.stringify(schema)).not.toMatch(/\$|anyOf|oneOf|additionalProperties|"title"/)
    for (const property of Object.values(Object.entries(schema).find(([key]) => key === "properties")?.[1] ?? {})) {
      expect(property).toMatchObject({ type: expect.any(String), description: expect.any(String) })
    }
  }
})

test("A number out of a tool's range is answered with the field and what it takes, and the schema says the same", () =>
  inSandbox(
    Effect.gen(function* () {
      yield* put("a.txt", "one\n")
      const least = {
        terminal: [{ command: "true" }, { timeout: 1 }],
        process: [{ action: "list" }, { timeout: 0, offset: 0, limit: 1 }],
        read_file: [{ path: "a.txt" }, { offset: 1, limit: 1 }],
        search_files: [{ pattern: "one" }, { limit: 1, offset: 0, context: 0 }]
      } as const
      for (const [name, [args, bounds]] of Object.entries(least)) {
        for (const [field, minimum] of Object.entries(bounds)) {
          expect(schemas[name]).toMatchObject({ properties: { [field]: { type: "integer", minimum } } })
          const below = minimum - 1
          const bad = yield* use(name, { ...args, [field]: below })
          expect(bad).toMatchObject({ ok: false, valid: false })
          expect(bad.result.error).toContain(`${field}: expected a whole number of at least ${minimum}, got ${below}`)
          expect((yield* use(name, { ...args, [field]: String(minimum) })).ok).toBe(true)
          expect((yield* use(name, { ...args, [field]: field === "offset" ? minimum : 1_000_000 })).ok).toBe(true)
        }
      }
    })
  ))

test("The task list is replaced, merged by id, and read", () =>
  inSandbox(
    Effect.gen(function* () {
      expect((yield* use("todo", {})).result).toMatchObject({ todos: [], summary: { total: 0 } })
      const a = { id: "a", content: "first", status: "in_progress" }
      yield* use("todo", { todos: [a, { id: "b", content: "second" }] })
      const merged = yield* use("todo", {
        todos: [
          { id: "a", status: "completed" },
          { id: "c", content: "third", status: "cancelled" }
        ],
        merge: true
      })
      expect(merged.result).toEqual({
        todos: [
          { ...a, status: "completed" },
          { id: "b", content: "second", status: "pending" },
          { id: "c", content: "third", status: "cancelled" }
        ],
        summary: { total: 3, pending: 1, in_progress: 0, completed: 1, cancelled: 1 }
      })
      const nameless = yield* use("todo", { todos: [{ id: "d" }], merge: true })
      expect(nameless.ok).toBe(false)
      expect((yield* use("todo", {})).result.summary.total).toBe(3)
      expect((yield* use("todo", { todos: [] })).result.todos).toEqual([])
    })
  ))
