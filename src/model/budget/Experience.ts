/** What calls have spent so far, by who asks which model: what the next one could spend. */
import type { Ask, Usage } from "../Model.ts"

/** Characters that a picture counts as: models take about as many tokens for it as for so long a text. */
const pictureSize = 6000

/** Characters of what is asked. */
export const sizeOf = ({ messages }: Ask): number =>
  messages.reduce(
    (sum, message) =>
      sum +
      (message.role === "answer"
        ? message.answer.content.length +
          message.answer.reasoning.length +
          message.answer.toolCalls.reduce((length, call) => length + call.arguments.length, 0)
        : message.content.length + (message.role === "user" ? (message.images?.length ?? 0) * pictureSize : 0)),
    0
  )

/** What calls have spent so far of one thing, by how large they were. */
class Experience {
  private most = 0
  private readonly smallest = { size: Number.POSITIVE_INFINITY, amount: 0 }
  private readonly largest = { size: 0, amount: 0 }

  /** A call may well spend so much. */
  expect(amount: number): void {
    this.most = Math.max(this.most, amount)
  }

  add(amount: number, size: number): void {
    this.expect(amount)
    if (size < this.smallest.size) Object.assign(this.smallest, { size, amount })
    if (size > this.largest.size) Object.assign(this.largest, { size, amount })
  }

  /** What a call of this size could spend: the most so far, and more for one that is larger than all, where size tells. */
  of(size: number): number {
    const { smallest, largest } = this
    const slope = largest.size > smallest.size ? (largest.amount - smallest.amount) / (largest.size - smallest.size) : 0
    return this.most + Math.max(0, slope) * Math.max(0, size - largest.size)
  }
}

/** Calls that spend alike: those of the sessions themselves, or those of one tool to one model. */
export class Kind {
  readonly cost = new Experience()
  readonly tokens = new Experience()
  /** Whether one was answered. */
  known = false
  /** Why none is made any more, in a sentence; empty while they are. */
  closed = ""

  add({ cost_usd, total }: Usage, size: number): void {
    this.cost.add(cost_usd, size)
    this.tokens.add(total, size)
  }
}

/** All kinds of calls of a run. */
export class Kinds {
  /** Of the sessions themselves. */
  readonly own = new Kind()
  private readonly asides = new Map<string, Kind>()

  of({ aside }: Ask): Kind {
    if (aside === undefined) return this.own
    const name = `${aside.tool} ${aside.model ?? ""}`
    const kind = this.asides.get(name) ?? new Kind()
    this.asides.set(name, kind)
    return kind
  }

  /** Whether anything is known of what calls spend. */
  get known(): boolean {
    return this.own.known || [...this.asides.values()].some(({ known }) => known)
  }

  /** What a call could spend; of one of a kind that is not known, as much as any. */
  estimate(kind: Kind, size: number): { readonly cost: number; readonly tokens: number } {
    const like = kind.known ? [kind] : [this.own, ...this.asides.values()]
    return {
      cost: Math.max(...like.map(({ cost }) => cost.of(size))),
      tokens: Math.max(...like.map(({ tokens }) => tokens.of(size)))
    }
  }
}
