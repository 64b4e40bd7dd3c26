/** A growing array of numbers in one block of memory, so that an index of a million rows costs megabytes and no objects. */

type Block = Uint8Array | Uint32Array | Int32Array | Float64Array

/** Numbers of one fixed width, appended at the end. */
export class Column<B extends Block> {
  private size = 0
  private constructor(
    private block: B,
    private readonly make: (length: number) => B
  ) {}

  static readonly of = <B extends Block>(make: (length: number) => B): Column<B> => new Column(make(1024), make)

  get length(): number {
    return this.size
  }

  push(value: number): void {
    if (this.size === this.block.length) {
      const grown = this.make(this.size * 2)
      grown.set(this.block)
      this.block = grown
    }
    this.block[this.size++] = value
  }

  /** The number at `at`, which must be below `length`. */
  get(at: number): number {
    return this.block[at] ?? 0
  }

  set(at: number, value: number): void {
    this.block[at] = value
  }
}

export const bytes = (): Column<Uint8Array> => Column.of((length) => new Uint8Array(length))
export const counts = (): Column<Uint32Array> => Column.of((length) => new Uint32Array(length))
export const places = (): Column<Int32Array> => Column.of((length) => new Int32Array(length))
export const offsets = (): Column<Float64Array> => Column.of((length) => new Float64Array(length))
