/** A command line that cannot be run as it stands. */
import { Schema } from "effect"

/** `message` is one line: the option, what was given, what is allowed. */
export class UsageError extends Schema.TaggedError<UsageError>()("UsageError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}
