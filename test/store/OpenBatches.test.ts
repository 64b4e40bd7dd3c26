/** Every batch is reported over exactly once: when its last session is over and none of it can come any more. */
import { FastCheck as fc } from "effect"
import { expect, it } from "vitest"
import { OpenBatches } from "../../src/store/OpenBatches.ts"
import * as Resume from "../../src/store/Resume.ts"

it("A batch is over once, after all its sessions, in whatever order they end.", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 30 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 6 }),
      fc.infiniteStream(fc.nat()),
      (prompts, size, workers, choices) => {
        const units = [...Resume.remaining(new Resume.Done(prompts, 1), new Resume.Failed(1, String), null, size, 3)]
        const batches = new OpenBatches()
        const over: Array<number> = []
        const note = (batch: number | undefined) => {
          if (batch === undefined) return
          expect(inFlight.some((unit) => unit.batch === batch)).toBe(false)
          expect(units.some((unit) => unit.batch === batch)).toBe(false)
          over.push(batch)
        }
        const inFlight: Array<Resume.Unit> = []
        const expected = [...new Set(units.map(({ batch }) => batch))]
        while (units.length > 0 || inFlight.length > 0) {
          const next = inFlight.length < workers ? units.shift() : undefined
          if (next !== undefined) {
            inFlight.push(next)
            note(batches.start(next))
            continue
          }
          if (units.length === 0) note(batches.finish())
          const [ended] = inFlight.splice((choices.next().value ?? 0) % inFlight.length, 1)
          if (ended !== undefined) note(batches.end(ended))
        }
        note(batches.finish())
        expect(over.toSorted((a, b) => a - b)).toEqual(expected)
      }
    )
  )
})
