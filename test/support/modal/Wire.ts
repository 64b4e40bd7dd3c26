/** Modal's own message definitions, as the pinned SDK carries them: it uses them and does not export them. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { CompatServiceDefinition } from "nice-grpc"

const modules = new URL("../../../node_modules/", import.meta.url)

const { version } = JSON.parse(readFileSync(new URL("modal/package.json", modules), "utf8"))

type Definition = Extract<CompatServiceDefinition, { readonly fullName: string }>

/** Definitions of the two services that the SDK talks to, with only the methods that are asked for. */
export const load = async (methods: {
  readonly control: ReadonlyArray<string>
  readonly router: ReadonlyArray<string>
}): Promise<{ control: CompatServiceDefinition; router: CompatServiceDefinition }> => {
  // A copy of the bundle, exporting two names more, stands where it finds the same packages as the bundle itself.
  const folder = fileURLToPath(new URL(".cache/batch-runner/", modules))
  const copy = `${folder}modal-${version}.mjs`
  if (!existsSync(copy)) {
    mkdirSync(folder, { recursive: true })
    const draft = `${copy}.${process.pid}`
    writeFileSync(
      draft,
      `${readFileSync(new URL("modal/dist/index.js", modules), "utf8")}\nexport { ModalClientDefinition, TaskCommandRouterDefinition }\n`
    )
    renameSync(draft, copy)
  }
  const wire = await import(/* @vite-ignore */ pathToFileURL(copy).href)
  const part = (definition: Definition, names: ReadonlyArray<string>): CompatServiceDefinition => {
    const { methods } = definition
    const missing = names.filter((name) => methods[name] === undefined)
    if (missing.length > 0) throw new Error(`modal ${version} has no calls ${missing.join(", ")}`)
    return {
      ...definition,
      methods: Object.fromEntries(names.flatMap((name) => (methods[name] ? [[name, methods[name]]] : [])))
    }
  }
  return {
    control: part(wire.ModalClientDefinition, methods.control),
    router: part(wire.TaskCommandRouterDefinition, methods.router)
  }
}
