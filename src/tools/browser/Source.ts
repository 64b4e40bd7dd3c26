/** Where browser contexts come from, and what is told when none can be had or a page does not do its part. */
import { Duration, Effect, Schema, type Scope } from "effect"
import type { BrowserContext, Page } from "playwright-core"

/** No browser could be had. `message` is for the model; it holds no address or key of the browser's own. */
export class BrowserError extends Schema.TaggedError<BrowserError>()("BrowserError", { detail: Schema.String }) {
  override get message(): string {
    return this.detail
  }
}

/** A page did not do what was asked of it. */
export class PageError extends Schema.TaggedError<PageError>()("PageError", {
  /** As Playwright says it, without colours and without its log of the call. */
  detail: Schema.String,
  /** Whether there was no answer at all in time: a page that hangs. */
  late: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  /** All that Playwright says of it: what it waited for, what the browser wrote. */
  log: Schema.optionalWith(Schema.String, { default: () => "" })
}) {
  override get message(): string {
    return this.detail
  }
}

/** A context of one session. */
export interface Opened {
  readonly context: BrowserContext
  /** Its first page. */
  readonly page: Page
  /** Whether its browser still lives. */
  readonly alive: () => boolean
  /** Why an address was not reached, where more is known than the browser tells. */
  readonly why: (url: string) => string | undefined
  /** Why a page that is shown may not be read; where nothing refused can be reached, there is nothing to say. */
  readonly refuses: (url: string) => Promise<string | undefined>
  /** Whether downloaded files lie on this machine. */
  readonly downloads: boolean
}

export interface Source {
  /** A context that no other session shares; closed with the scope. */
  readonly open: Effect.Effect<Opened, BrowserError, Scope.Scope>
}

/** Bytes that a session may download in one file. */
export const downloadBytes = 10_000_000

/** The size of every page. */
export const viewport = { width: 1280, height: 720 } as const

/** What Playwright does, within so many seconds. */
export const within = <A>(seconds: number, ask: () => Promise<A>): Effect.Effect<A, PageError> =>
  Effect.tryPromise({ try: ask, catch: pageError }).pipe(
    Effect.timeoutFail({
      duration: Duration.seconds(seconds),
      onTimeout: () => new PageError({ detail: `the page does not answer within ${seconds} seconds`, late: true })
    })
  )

/** The same for what may as well fail. */
export const attempt = (seconds: number, ask: () => Promise<unknown>): Effect.Effect<void> =>
  Effect.ignore(within(seconds, ask))

/** The same for what must be ended, with the scope, or when it comes after nobody waits for it any more. */
export const owned = <A>(
  seconds: number,
  ask: () => Promise<A>,
  end: (value: A) => Promise<unknown>
): Effect.Effect<A, PageError, Scope.Scope> => {
  const coming = Effect.suspend(() => {
    let wanted = true
    const asked = async () => {
      const value = await ask()
      if (!wanted) await end(value)
      return value
    }
    const given = Effect.sync(() => {
      wanted = false
    })
    return Effect.onError(within(seconds, asked), () => given)
  })
  return Effect.uninterruptibleMask((restore) =>
    Effect.tap(restore(coming), (value) => Effect.addFinalizer(() => attempt(10, () => end(value))))
  )
}

const pageError = (error: unknown): PageError => {
  const text = (error instanceof Error ? error.message : String(error)).replace(/\x1b\[\d*m/g, "").slice(0, 20_000)
  const [said = ""] = text.split(/\n\s*Call log:\n/, 1)
  return new PageError({ detail: said.replace(/^[a-zA-Z]+\.[a-zA-Z]+: (Error: )?/, "").slice(0, 500), log: text })
}
