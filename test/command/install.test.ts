/** The built command wherever it is put: it finds its program, and needs nothing that only the builder's machine has. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { expect, inject, it } from "vitest"
import { Workplace } from "../support/Command.ts"

/** A copy of the built command; gives a line of shell that asks it for its version. */
const copied = (place: Workplace) => {
  cpSync(dirname(dirname(inject("command"))), place.path("installed"), { recursive: true })
  return `${process.execPath} installed/bin/batch-runner.js --version`
}

const isCompiled = (name: string): boolean => name.endsWith(".cache")

it("starts through a link from elsewhere, as a global installation makes it", async () => {
  const place = new Workplace()
  copied(place)
  mkdirSync(place.path("path"))
  symlinkSync("../installed/bin/batch-runner.js", place.path("path", "batch-runner"))
  const ended = await place.shell("cd / && PATH=$OLDPWD/path:$PATH batch-runner --version").ended
  expect(ended).toMatchObject({ code: 0, stderr: "" })
  expect(ended.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
})

it("starts without its compiled code, and with half of it", async () => {
  const place = new Workplace()
  const version = copied(place)
  const names = readdirSync(place.path("installed", "bin")).filter(isCompiled)
  expect(names.length).toBe(1)
  const path = place.path("installed", "bin", names[0] ?? "")
  writeFileSync(path, readFileSync(path).subarray(0, 100_000))
  expect(await place.shell(version).ended).toMatchObject({ code: 0, stderr: "" })
  rmSync(path)
  expect(await place.shell(version).ended).toMatchObject({ code: 0, stderr: "" })
})

it("runs the program that is there, never the one that its compiled code was made of", async () => {
  const place = new Workplace()
  copied(place)
  const path = place.path("installed", "bin", "program.cjs")
  const words = "dataset_file is required"
  const program = readFileSync(path, "utf8")
  expect(program).toContain("is required: ")
  writeFileSync(path, program.replaceAll("is required: ", "IS REQUIRED: "))
  const ended = await place.shell(`${process.execPath} installed/bin/batch-runner.js`).ended
  expect(ended).toMatchObject({ code: 2, stdout: "" })
  expect(ended.stderr).toContain(words.replace("is required", "IS REQUIRED"))
})
