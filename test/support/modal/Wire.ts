/** Modal's own message definitions, as the pinned SDK carries them: it uses them and does not export them. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { CompatServiceDefinition } from "nice-grpc"

const bundle = fileURLToPath(import.meta.resolve("modal"))

const { version } = JSON.parse(readFileSync(fileURLToPath(new URL("../package.json", import.meta.resolve("modal"))), "utf8"))

/** Definitions of the two services that the SDK talks to, with only the methods that are asked for. */
export const load = async (methods: {
  readonly control: ReadonlyArray<string>
  readonly router: ReadonlyArray<string>
}): Promise<{ control: CompatServiceDefinition; router: CompatServiceDefinition }> => {
  // A copy of the bundle, exporting two names more, stands where it finds the same packages as the bundle itself.
  const folder = fileURLToPath(new URL("../../../node_modules/.cache/batch-runner/", import.meta.url))
  const copy = `${folder}modal-${version}.mjs`
  if (!existsSync(copy)) {
    mkdirSync(folder, { recursive: true })
    const draft = `${copy}.${process.pid}`
    writeFileSync(
      draft,
      `${readFileSync(bundle, "utf8")}\nexport { ModalClientDefinition, TaskCommandRouterDefinition }\n`
    )
    renameSync(draft, copy)
  }
  const wire = await import(/* @vite-ignore */ pathToFileURL(copy).href)
  const part = (definition: CompatServiceDefinition & { methods: object }, names: ReadonlyArray<string>) => {
    const known: Record<string, unknown> = { ...definition.methods }
    const missing = names.filter((name) => known[name] === undefined)
    if (missing.length > 0) throw new Error(`modal ${version} has no calls ${missing.join(", ")}`)
    return { ...definition, methods: Object.fromEntries(names.map((name) => [name, known[name]])) }
  }
  return {
    control: part(wire.ModalClientDefinition, methods.control),
    router: part(wire.TaskCommandRouterDefinition, methods.router)
  }
}
