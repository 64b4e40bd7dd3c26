#!/usr/bin/env node
/** Runs the program beside this file, with the code that V8 made of it on this very Node when it was built, if there is any: half of the start-up. */
import { hash } from "node:crypto"
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { Script } from "node:vm"

const beside = (name) => fileURLToPath(new URL(name, import.meta.url))
const filename = beside("program.cjs")
const program = readFileSync(filename, "utf8")

const compiled = () => {
  try {
    // Named after all that it was made of: V8 itself compares no more of the program than its length.
    const made = hash("sha1", program).slice(0, 12)
    return readFileSync(beside(`program.${process.version}-${process.platform}-${process.arch}-${made}.cache`))
  } catch {
    return undefined
  }
}

const script = new Script(`(function(require,__filename){${program}\n})`, { filename, cachedData: compiled() })
script.runInThisContext()(createRequire(filename), filename)
