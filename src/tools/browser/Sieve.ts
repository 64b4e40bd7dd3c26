/** A program between us and Chromium: what a page makes too large never reaches us, for one message could end the whole run. */
import { readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { Effect, Either } from "effect"
import * as Proc from "../../sandbox/Proc.ts"
import { quote } from "../../sandbox/Shell.ts"

/** Bytes of one message of the DevTools protocol; pictures of a page and its tree are far smaller. */
export const messageBytes = 16_000_000

/** The name of the folder in which a browser keeps the socket of its profile. */
const ofSocket = /^\.?(?:org|com)\.[\w.]+\.\w{6}$/

/** Chromium reads descriptor 3 by itself and writes to 4, each message ending in a zero byte. */
const source = `const { spawn } = require("node:child_process")
const fs = require("node:fs")
const { Socket } = require("node:net")
const { basename, dirname } = require("node:path")
const [most, program, ...args] = process.argv.slice(2)
const browser = spawn(program, args, { stdio: ["ignore", 1, 2, 3, "pipe"] })
fs.closeSync(3)
const out = new Socket({ fd: 4, readable: false })
const profile = (args.find((each) => each.startsWith("--user-data-dir=")) || "").slice(16)
const give = (code) =>
  fs.readlink(profile + "/SingletonSocket", (error, socket) => {
    const leave = () => out.end(() => process.exit(code))
    const folder = error ? "" : dirname(socket)
    if (${ofSocket}.test(basename(folder))) fs.rm(folder, { recursive: true, force: true }, leave)
    else leave()
  })
const from = browser.stdio[4]
let held = []
let size = 0
from.on("data", (data) => {
  let free = true
  for (let start = 0; start < data.length; ) {
    const zero = data.indexOf(0, start)
    const end = zero < 0 ? data.length : zero + 1
    size += end - start
    if (size > Number(most)) held = []
    else held.push(data.subarray(start, end))
    if (zero >= 0) {
      for (const part of held) free = out.write(part)
      held = []
      size = 0
    }
    start = end
  }
  if (!free) from.pause()
})
out.on("drain", () => from.resume())
// Nobody is left to read it, nor to clean up.
out.on("error", () => browser.kill("SIGKILL") || process.exit(1))
browser.on("error", (error) => {
  process.stderr.write(error.message + "\\n")
  give(1)
})
browser.on("exit", (code) => setTimeout(() => give(code ?? 1), 300))
browser.on("close", (code) => give(code ?? 1))
`

/** Writes the program into a folder; gives the path to start it by, in Chromium's place and with its arguments. */
export const write = (folder: string, program: string, most: number = messageBytes): string => {
  const [sieve, path] = [join(folder, "sieve.cjs"), join(folder, "chromium")]
  writeFileSync(sieve, source)
  writeFileSync(
    path,
    `#!/bin/sh\nexec ${[process.execPath, sieve, String(most), program].map(quote).join(" ")} "$@"\n`,
    {
      mode: 0o700
    }
  )
  return path
}

/** Ends whatever still runs on a profile, and removes what only a browser that ends by itself removes. */
export const end = Effect.fn("Sieve.end")(function* (profile: string) {
  const ours = (pid: number) =>
    Either.getOrElse(
      Either.try(() => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")),
      (): ReadonlyArray<string> => []
    ).includes(`--user-data-dir=${profile}`)
  // What is not dead yet may still write into the folders that go next.
  for (let look = 0, left = Proc.list(ours); left.length > 0 && look < 40; look++, left = Proc.list(ours)) {
    for (const { pid } of left) Proc.signal(pid, "SIGKILL")
    yield* Proc.pause(50)
  }
  Either.try(() => {
    const folder = dirname(readlinkSync(join(profile, "SingletonSocket")))
    if (ofSocket.test(basename(folder))) rmSync(folder, { recursive: true, force: true })
  })
})
