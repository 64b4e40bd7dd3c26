/** The first look into a sandbox, by each shell that an image may have. */
import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { FastCheck as fc } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import * as Survey from "../../src/sandbox/Survey.ts"

const root = realpathSync(mkdtempSync(join(tmpdir(), "survey-")))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const shells: ReadonlyArray<readonly [name: string, argv: ReadonlyArray<string>]> = [
  ["sh", ["/bin/sh"]],
  ["bash", ["/bin/bash"]],
  ["busybox", ["busybox", "sh"]]
]
const here = shells.filter(([, [program = "", ...rest]]) => spawnSync(program, [...rest, "-c", ":"]).status === 0)

let places = 0

/** A place with a home and a working directory, in which a shell surveys for `cwd`. */
const place = ([program = "", ...rest]: ReadonlyArray<string>) => {
  const base = join(root, `${places++}`)
  const [home, work] = [join(base, "home"), join(base, "work")]
  for (const path of [home, work]) mkdirSync(path, { recursive: true })
  const ask = (cwd: string, environment: Readonly<Record<string, string>> = {}, then = "printf after") =>
    spawnSync(program, [...rest, "-c", Survey.script(then), "sh", cwd], {
      cwd: work,
      env: { PATH: process.env.PATH, HOME: home, ...environment },
      encoding: "utf8"
    })
  return { base, home, work, ask, survey: (cwd: string) => Survey.read(ask(cwd).stdout) }
}

describe.each(here)("A survey by %s", (_, argv) => {
  it("without a directory finds the one where it runs, the home and bash, and then goes on.", () => {
    const { home, work, ask, survey } = place(argv)
    const bash = spawnSync("/bin/sh", ["-c", "command -v bash"], { encoding: "utf8" }).stdout.trim()
    expect(survey("")).toEqual({
      home,
      shell: bash,
      lacks: "",
      cwd: work,
      directory: "there",
      why: "",
      above: work,
      uid: process.getuid?.(),
      gid: process.getgid?.()
    })
    expect(ask("")).toMatchObject({ status: 0, stderr: "", stdout: expect.stringMatching(/\x1eafter$/) })
  })

  it("makes a directory that is not there, with its parents, and says so.", () => {
    const { base, work, survey } = place(argv)
    const names = ["made", "a/b c/d", "it's", 'say "hi"', "$HOME", "-p", "*", " lead", "ü\n\tx", "a\\b", "!", "(", "-d"]
    for (const cwd of [...names, join(base, "abs", "olute")]) {
      const path = cwd.startsWith("/") ? cwd : join(work, cwd)
      expect(existsSync(path)).toBe(false)
      expect(survey(cwd), cwd).toMatchObject({ cwd: path, directory: "bare", why: "" })
      expect(existsSync(path), cwd).toBe(true)
      expect(survey(cwd), cwd).toMatchObject({ cwd: path, directory: "there", why: "" })
    }
  })

  it("starts relative names at the directory where it runs, and ~ at the home.", () => {
    const { home, work, survey } = place(argv)
    mkdirSync(join(home, "in home"))
    mkdirSync(join(work, "in work"))
    expect(survey("in work")).toMatchObject({ cwd: join(work, "in work"), directory: "there" })
    expect(survey(".")).toMatchObject({ cwd: work, directory: "there" })
    expect(survey("in work/../../new/")).toMatchObject({ cwd: join(work, "..", "new"), directory: "bare" })
    expect(survey("~")).toMatchObject({ cwd: home, directory: "there" })
    expect(survey("~/in home")).toMatchObject({ cwd: join(home, "in home"), directory: "there" })
    expect(survey("~/a/b")).toMatchObject({ cwd: join(home, "a", "b"), directory: "bare" })
    // Another's home is none that a shell would have to know.
    expect(survey("~root")).toMatchObject({ cwd: join(work, "~root"), directory: "bare" })
  })

  it("takes / for a home that nobody names.", () => {
    const { ask } = place(argv)
    expect(Survey.read(ask("~", { HOME: "" }).stdout)).toMatchObject({ home: "/", cwd: "/", directory: "there" })
  })

  it("says why a directory cannot be.", () => {
    const { work, survey } = place(argv)
    writeFileSync(join(work, "file"), "")
    for (const cwd of ["file", "file/below", join(work, "file")]) {
      const found = survey(cwd)
      expect(found, cwd).toMatchObject({ directory: "none", cwd: cwd.startsWith("/") ? cwd : join(work, cwd) })
      expect(found?.why, cwd).toMatch(/^mkdir: [^\n]*(File exists|Not a directory)$/)
      expect(Survey.blocked(cwd, found?.why ?? "")).toMatch(/^cwd: "[^\n]+" cannot be the working directory: [^\n]+$/)
    }
    expect(survey("/proc/nowhere/at/all")).toMatchObject({
      directory: "none",
      above: "/proc",
      why: expect.stringMatching(/./)
    })
    expect(survey("file/below/it")?.above).toBe(join(work, "file"))
    expect(existsSync(join(work, "file"))).toBe(true)
  })

  it("finds /bin/sh where there is no bash.", () => {
    const { base, ask } = place(argv)
    const bin = join(base, "bin")
    mkdirSync(bin)
    spawnSync("ln", ["-s", spawnSync("which", ["mkdir"], { encoding: "utf8" }).stdout.trim(), join(bin, "mkdir")])
    const asked = argv[0] === "busybox" ? undefined : ask("x", { PATH: bin })
    if (asked !== undefined) expect(Survey.read(asked.stdout)).toMatchObject({ shell: "/bin/sh", directory: "bare" })
  })
})

describe("A report", () => {
  const text = "warning: x\n\x1e/root\0/usr/bin/bash\0/app/a b\0bare\0\0/app\x007\x008\0\x1e"
  const found = {
    home: "/root",
    shell: "/usr/bin/bash",
    cwd: "/app/a b",
    directory: "bare",
    why: "",
    above: "/app",
    uid: 7,
    gid: 8,
    lacks: ""
  }

  it("is read when it is complete, and not before, whatever stands around it.", () => {
    for (let length = 0; length < text.length; length++) expect(Survey.read(text.slice(0, length))).toBeUndefined()
    expect(Survey.read(text)).toEqual(found)
    fc.assert(
      fc.property(fc.string(), (after) => {
        expect(Survey.read(text + after)).toEqual(found)
      })
    )
  })

  it("is read as paths that are whole, with a shell that can be run.", () => {
    const read = (home: string, shell: string, cwd: string, directory = "there") =>
      Survey.read(`\x1e${home}\0${shell}\0${cwd}\0${directory}\0 two\n lines \0/\0none\0\0\x1e`)
    expect(read("/", "bash", "//x/./y/../")).toEqual({
      home: "/",
      shell: "/bin/sh",
      cwd: "/x",
      directory: "there",
      why: "two lines",
      above: "/",
      uid: 0,
      gid: 0,
      lacks: ""
    })
    expect(read("home", "/bin/bash", "/", "none")).toMatchObject({ home: "/home", directory: "none" })
  })
})

describe("A directory's name", () => {
  it("may be anything that a file system takes.", () => {
    for (const cwd of ["", "~", "a b", "-x", "ü".repeat(127), "a\nb", "/x".repeat(1000)]) {
      expect(Survey.unfit(cwd)).toBeUndefined()
    }
  })

  it("with control characters of ours, or too long for any, is told.", () => {
    for (const cwd of ["a\0b", "\x1e"]) expect(Survey.unfit(cwd)).toBe("it has a control character")
    for (const cwd of ["x".repeat(256), "ü".repeat(128), "/x".repeat(1501)]) {
      expect(Survey.unfit(cwd)).toBe("its name is too long")
    }
  })

  it("that cannot be is told in one line, without the program that said so.", () => {
    expect(Survey.blocked("/a\nb", "mkdir: cannot create directory '/a': Permission denied")).toBe(
      "cwd: \"/a\\nb\" cannot be the working directory: cannot create directory '/a': Permission denied"
    )
    expect(Survey.blocked("x", "")).toBe('cwd: "x" cannot be the working directory: it could not be made')
    expect(Survey.blocked("x".repeat(5000), "y").length).toBeLessThan(300)
  })
})
