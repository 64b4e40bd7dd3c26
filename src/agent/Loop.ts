/** Notices a session that goes in circles: the same call with the same result, again and again. */
import { isDeepStrictEqual } from "node:util"
import { Either, Predicate } from "effect"
import type { ToolCall } from "../model/Model.ts"
import * as Arguments from "../tools/Arguments.ts"
import { render } from "../tools/Tool.ts"

/** Repetitions in a row from which on the model is told. */
export const hintFrom = 3
/** Repetitions in a row that end a session. */
export const endAt = 10

/** The row of equal calls that a session is in. */
export class Loop {
  // The first of the row: its text is the one that the transcript holds, so that nothing is kept twice.
  private first: { readonly call: ToolCall; readonly text: string } | undefined
  private times = 0

  /** How many times in a row this call has given this result, `text` being what the tool gave. */
  count(call: ToolCall, text: string): number {
    if (this.first !== undefined && this.first.text === text && sameCall(this.first.call, call)) return ++this.times
    this.first = { call, text }
    this.times = 1
    return 1
  }
}

/** By name and by the value of the arguments; what is no JSON object is compared as it is written. */
const sameCall = (a: ToolCall, b: ToolCall): boolean => {
  if (a.name !== b.name) return false
  if (a.arguments === b.arguments) return true
  const [left, right] = [Arguments.read(a.arguments), Arguments.read(b.arguments)]
  return Either.isRight(left) && Either.isRight(right) && isDeepStrictEqual(left.right, right.right)
}

/** The result, a JSON object, with a further field for the model. */
export const hinted = (text: string, times: number): string => {
  const hint = `the same call gave the same result ${times} times in a row; try something else, or finish with what you have`
  if (text.includes('"hint":')) {
    const result: unknown = JSON.parse(text)
    if (Predicate.isRecord(result) && Object.hasOwn(result, "hint")) {
      const own = Predicate.isString(result.hint) ? result.hint : JSON.stringify(result.hint)
      return render({ ...result, hint: `${own}; ${hint}` })
    }
  }
  return `${text.slice(0, -1)}${text === "{}" ? "" : ","}"hint":${JSON.stringify(hint)}}`
}
