/** The image of each prompt of a data set by its place: a number a row, and each name once. */
import * as Column from "../../dataset/Column.ts"

/** Names told apart at most. */
const namesAtMost = 100_000

export class Register {
  private readonly places = Column.counts()
  private readonly names: Array<string> = []
  private readonly numbers = new Map<string, number>()

  /** Notes the image of the next place, empty for none. */
  readonly note = (image: string): void => {
    const number = this.numbers.get(image) ?? this.names.length
    if (number === this.names.length && number < namesAtMost) {
      this.names.push(image)
      this.numbers.set(image, number)
    }
    this.places.push(number)
  }

  /** The image of the prompt at a place; undefined for one of too many. */
  at(place: number): string | undefined {
    return this.names[this.places.get(place)]
  }
}
