/**
 * How many calls an endpoint takes at once, learnt from what becomes of them: one more now and then while it answers, fewer
 * when it refuses. Pure of time and of effects.
 */

/** A call in flight. */
export interface Call {
  /** The number of the call, in the order in which calls were begun. */
  readonly number: number
  /** Calls in flight when it was begun, itself included, without those that were being refused at that moment. */
  level: number
  refused: boolean
}

/** Calls at once before anything is known. */
const start = 16

/** Of the last calls, so many refused mean that the endpoint takes fewer than it did; and what is left of the limit then. */
const signs = [
  { calls: 6, refused: 6, left: 0.7 },
  { calls: 20, refused: 10, left: 0.7 },
  { calls: 100, refused: 25, left: 0.8 }
]

/** What is left when so many calls after a cut are refused before one is answered. */
const again = { refused: 3, left: 0.7 }

/**
 * Of the last calls that took the last place, such a part refused means a place too many; of a few of them, half; and more where
 * calls are refused whatever place they take, as far as the last ones tell, by so many times as many as are to be expected.
 */
const full = { calls: 12, few: 6, refused: 2, part: 1 / 3, known: 20, margin: 5 }

/** Successes at the known limit before one more is tried, at least, and in calls per place. */
const patience = { calls: 40, perPlace: 5 }

export class Window {
  /** Calls at once at most. */
  readonly most: number
  private size: number
  /** Where the endpoint was last seen to refuse; infinite before it did. */
  private ceiling = Number.POSITIVE_INFINITY
  /** The most calls at once that were seen to be answered since the last cut. */
  private proven = 0
  /** Progress to the next place, from 0 to 1. */
  private progress = 0
  /** How often in a row one more than the ceiling was found to be refused (below 0: to be taken). */
  private refusals = 0
  /** Refusals of more calls at once than were ever answered, with no such answer in between. */
  private strikes = 0
  /** What became of the last calls that were begun after the last cut: true for refused. */
  private last: Array<boolean> = []
  /** The last calls that took the last place. */
  private top: Array<Call> = []
  private readonly calls = new Map<number, Call>()
  private count = 0
  /** The last call that was begun before the last cut. */
  private cutAt = 0
  /** The last call that was begun before the last place was found to be one too many. */
  private fullAt = 0
  /** The last call that was begun before places were taken away. */
  private loweredAt = 0
  /** Calls begun after the last cut that were refused before one was answered; undefined once one was. */
  private unanswered: number | undefined

  /** `adaptive` false: always `most`. */
  constructor(
    most: number,
    readonly adaptive: boolean
  ) {
    this.most = most
    this.size = adaptive ? Math.min(most, start) : most
  }

  get limit(): number {
    return this.size
  }

  get inFlight(): number {
    return this.calls.size
  }

  /** Calls begun so far. */
  get begun(): number {
    return this.count
  }

  begin(): Call {
    const call = { number: ++this.count, level: this.calls.size + 1, refused: false }
    this.calls.set(call.number, call)
    if (call.level >= this.size) {
      this.top.push(call)
      if (this.top.length > full.calls) this.top.shift()
    }
    return call
  }

  /** It was neither answered nor refused: it broke, or was given up. */
  ended(call: Call): void {
    this.calls.delete(call.number)
  }

  /** `wanted`: more calls would be made if there were room. */
  answered(call: Call, wanted: boolean): void {
    this.calls.delete(call.number)
    // What was begun before the last cut tells nothing of what is taken since.
    if (!this.adaptive || call.number <= this.cutAt) return
    this.unanswered = undefined
    this.note(false)
    this.proven = Math.max(this.proven, call.level)
    if (call.level > this.ceiling && call.number > this.fullAt) {
      this.ceiling = call.level
      this.resize(Math.max(this.size, call.level))
      this.refusals = Math.min(0, this.refusals) - 1
      this.strikes = 0
    }
    if (wanted && this.size < this.most) this.grow()
  }

  /** The endpoint said that it has too much to do. */
  refused(call: Call): void {
    this.calls.delete(call.number)
    if (!this.adaptive) return
    // The endpoint never had it in work: those begun after it had less company than it seemed.
    for (const [number, other] of this.calls) if (number > call.number) other.level--
    call.refused = true
    // A burst from calls already in flight counts once.
    const late = call.number <= Math.max(this.cutAt, this.loweredAt)
    if (!late) this.note(true)
    if (!late && this.unanswered !== undefined) {
      this.unanswered++
      if (this.unanswered >= again.refused) this.cut(again.left)
      return
    }
    if (!late && call.level >= this.size && this.isFull()) {
      // Those begun before, whose answers come yet, had luck.
      this.fullAt = this.count
      this.lower(this.size - 1)
      return
    }
    // What is refused without company, or before anything is answered again, tells nothing of how many are taken.
    const alone = call.level === 1 || this.unanswered !== undefined
    if (!alone && call.level < this.size && call.level > this.proven) {
      this.bounded(call.level)
      return
    }
    if (late) return
    const sign = signs.find(({ calls, refused }) => this.last.slice(-calls).filter(Boolean).length >= refused)
    if (sign !== undefined) this.cut(sign.left)
  }

  /** More than it ever took. What it took up to there, it takes. */
  private bounded(level: number): void {
    // Once may be chance, and so is what happens to few of those that came as far: a refusal comes sooner than an answer.
    this.strikes++
    let pending = 0
    for (const { level: other } of this.calls.values()) if (other >= level) pending++
    if (this.strikes >= 2 && pending < this.strikes) this.lower(level - 1)
  }

  /** Whether the last place is one that the endpoint does not have: refused more often than calls are anyway. */
  private isFull(): boolean {
    this.top = this.top.filter(({ level }) => level >= this.size)
    const calls = this.top.length
    const refused = this.top.filter((call) => call.refused).length
    if (refused < full.refused || refused < calls * (calls < full.few ? 0.5 : full.part)) return false
    const others = this.last.filter(Boolean).length - refused
    const usual = Math.max(0, others) / Math.max(full.known, this.last.length - calls)
    return refused >= Math.round(full.refused + full.margin * calls * usual)
  }

  private lower(to: number): void {
    this.loweredAt = this.count
    this.resize(Math.min(this.size, to))
    this.ceiling = this.size
    this.proven = Math.min(this.proven, this.size)
    this.strikes = 0
    this.refusals = Math.min(1, Math.max(0, this.refusals) + 1)
  }

  private resize(to: number): void {
    const size = Math.min(this.most, Math.max(1, to))
    if (size === this.size) return
    this.size = size
    this.progress = 0
    this.top = []
  }

  private note(refused: boolean): void {
    this.last.push(refused)
    if (this.last.length > 100) this.last.shift()
  }

  private cut(left: number): void {
    // Cuts that follow one another are for one reason: where it began is where to come back to.
    if (this.unanswered === undefined) this.ceiling = Math.max(1, this.size - 1)
    this.resize(Math.floor(this.size * left))
    this.proven = 0
    this.refusals = 0
    this.strikes = 0
    this.last = []
    this.cutAt = this.count
    this.unanswered = 0
  }

  private grow(): void {
    this.progress += this.pace()
    if (this.progress >= 1) this.resize(this.size + 1)
  }

  /** Places that one success is worth. */
  private pace(): number {
    if (this.ceiling === Number.POSITIVE_INFINITY) return 1
    if (this.size < this.ceiling) return Math.min(1, 2 / this.size)
    // Each place beyond that was taken makes the next one likelier.
    const calls = Math.max(patience.calls, patience.perPlace * this.size) * 2 ** this.refusals
    return Math.min(1, 1 / calls)
  }
}
