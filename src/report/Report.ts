/** How a run stands when its session ends. */
import type { Merged } from "../store/Merge.ts"
import type { Statistics } from "./Statistics.ts"

/** Why a run could not go on, in a word and in a sentence; empty when it could. */
export interface Halt {
  readonly kind: string
  readonly message: string
}

export const wentOn: Halt = { kind: "", message: "" }

/** Figures of the whole run, and what this session of work met. */
export interface Report {
  readonly runName: string
  readonly location: string
  readonly sums: Statistics
  readonly merged: Merged
  /** Prompts of the data set, and sessions that they make. */
  readonly prompts: number
  readonly sessions: number
  /** Sessions without a result so far. */
  readonly toDo: number
  /** Failed sessions of this run of the program, by kind. */
  readonly failures: ReadonlyMap<string, number>
  /** Those of them that cannot succeed as they are. */
  readonly hopeless: number
  /** Sessions that failed before and were not run again, by the kind of their last failure. */
  readonly leftOut: ReadonlyMap<string, number>
  /** Seconds, all sessions of work together. */
  readonly durationSeconds: number
  readonly badLines: number
  /** Whether `stop` ended it. */
  readonly stopped: boolean
  /** Why the run could not go on; empty when it could. */
  readonly halted: string
}
