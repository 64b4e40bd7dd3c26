/** What was found of one thing, and how it stands on a line. Pure. */

/** `ok` works; `--` is not there, or was not tried; `!!` is wrong. */
export type Mark = "ok" | "--" | "!!"

export interface Told {
  readonly mark: Mark
  readonly subject: string
  readonly what: string
}

export const ok = (subject: string, what: string): Told => ({ mark: "ok", subject, what })
export const absent = (subject: string, what: string): Told => ({ mark: "--", subject, what })
export const wrong = (subject: string, what: string): Told => ({ mark: "!!", subject, what })

/** Lines of aligned text; a subject that is the one above stands once. */
export const lines = (all: ReadonlyArray<Told>): ReadonlyArray<string> => {
  const width = Math.min(24, Math.max(0, ...all.map(({ subject }) => subject.length)))
  return all.map(({ mark, subject, what }, at) => {
    const shown = all[at - 1]?.subject === subject ? "" : subject
    return `${mark}  ${shown.padEnd(width)}  ${what}`
  })
}
