#!/usr/bin/env node
/** Runs the program beside this file, with the code that V8 made of it on this very Node when it was built, if there is any: half of the start-up. */
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { Script } from "node:vm"

const beside = (name) => fileURLToPath(new URL(name, import.meta.url))
const compiled = () => {
  try {
    return readFileSync(beside(`program.${process.version}-${process.platform}-${process.arch}.cache`))
  } catch {
    return undefined
  }
}

const filename = beside("program.cjs")
const source = `(function(require,__filename){${readFileSync(filename, "utf8")}\n})`
const script = new Script(source, { filename, cachedData: compiled() })
script.runInThisContext()(createRequire(filename), filename)
