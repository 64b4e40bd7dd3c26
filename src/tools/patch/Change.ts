/** What a multi-file patch asks for, whichever form it is written in. */

export interface HunkLine {
  /** Kept, taken out, put in. */
  readonly mark: " " | "-" | "+"
  readonly text: string
}

/** One changed place of a file. */
export interface Hunk {
  /** Lines that stand somewhere before the place, outermost first. */
  readonly contexts: ReadonlyArray<string>
  readonly lines: ReadonlyArray<HunkLine>
  /** The place is the end of the file. */
  readonly atEnd: boolean
  /** Line, from 1, where the place was when the patch was made; null when it does not say. */
  readonly line: number | null
  /** Whether the file shall end with a newline; null to leave that as it is. */
  readonly finalNewline: boolean | null
}

export type Change =
  | { readonly _tag: "Add"; readonly path: string; readonly content: string }
  | { readonly _tag: "Delete"; readonly path: string }
  | {
      readonly _tag: "Update"
      readonly path: string
      /** The file's new path; null when it stays. */
      readonly moveTo: string | null
      readonly hunks: ReadonlyArray<Hunk>
    }
