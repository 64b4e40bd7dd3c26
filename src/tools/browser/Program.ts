/** Finds a Chromium on this machine. */
import { accessSync, constants, readdirSync, statSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { Either } from "effect"
import type { Variables } from "../Variables.ts"

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge"]

const applications = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"
]

const isProgram = (path: string): boolean =>
  Either.match(
    Either.try(() => {
      accessSync(path, constants.X_OK)
      return statSync(path).isFile()
    }),
    { onLeft: () => false, onRight: (file) => file }
  )

/** Those that Playwright installed, the newest first. */
const ofPlaywright = (): ReadonlyArray<string> =>
  [
    process.env.PLAYWRIGHT_BROWSERS_PATH ?? "",
    join(homedir(), ".cache", "ms-playwright"),
    join(homedir(), "Library", "Caches", "ms-playwright")
  ].flatMap((folder) =>
    Either.getOrElse(
      Either.try(() => (folder === "" ? [] : readdirSync(folder))),
      () => []
    )
      .filter((name) => /^chromium-\d+$/.test(name))
      .toSorted((a, b) => Number(b.slice(9)) - Number(a.slice(9)))
      .flatMap((name) =>
        [
          "chrome-linux/chrome",
          "chrome-linux64/chrome",
          "chrome-mac/Chromium.app/Contents/MacOS/Chromium",
          "chrome-mac-arm64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing",
          "chrome-mac-x64/Google Chrome for Testing.app/Contents/MacOS/Google Chrome for Testing"
        ].map((part) => join(folder, name, part))
      )
  )

/** Path of a Chromium; left is what is lacking. */
export const find = (variables: Variables): Either.Either<string, string> => {
  const named = variables.plain("CHROMIUM_PATH")
  if (named !== undefined) {
    return isProgram(named)
      ? Either.right(named)
      : Either.left(`CHROMIUM_PATH names ${named}, which is no executable file`)
  }
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "")
  const known = [...names.flatMap((name) => folders.map((folder) => join(folder, name))), ...applications]
  const found = known.find(isProgram) ?? ofPlaywright().find(isProgram)
  return found === undefined
    ? Either.left("no Chromium: install it or set CHROMIUM_PATH, or BROWSER_CDP_URL for one elsewhere")
    : Either.right(found)
}
