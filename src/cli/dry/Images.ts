/** The images of what is to do, most wanted first: each asked for once, as many as is decent. */
import { Effect } from "effect"
import { counted } from "../../agent/Preview.ts"
import { toldOf } from "../../sandbox/Inspection.ts"
import type { Places } from "./Places.ts"
import type { Plan } from "./Plan.ts"

/** Images asked for at one time, and in all. */
const atOnce = 8
const askedAtMost = 1000

/** Images that are told one by one. */
const shown = 20

export interface Images {
  readonly lines: ReadonlyArray<string>
  readonly problems: ReadonlyArray<string>
}

/** A group whose first ones are told, and of the rest how many prompts they are. */
const some = <A>(all: ReadonlyArray<A>, one: (item: A) => string, rest: (left: ReadonlyArray<A>) => string) =>
  all.length > shown ? [...all.slice(0, shown).map(one), rest(all.slice(shown))] : all.map(one)

const sum = (all: ReadonlyArray<{ readonly prompts: number }>): string =>
  counted(
    all.reduce((prompts, one) => prompts + one.prompts, 0),
    "prompt"
  )

export const ask = Effect.fn("Images.ask")(function* (plan: Plan, places: Places) {
  const wanted = [...plan.images].filter(([name]) => name !== "").sort((a, b) => b[1] - a[1])
  const all = wanted.map(([, prompts]) => ({ prompts }))
  if (all.length === 0) return { lines: [], problems: [] }
  if (places.imageless !== undefined) {
    const prompts = sum([...all, { prompts: plan.otherImages }])
    return {
      lines: [`${prompts} with an image, which none can have here`],
      problems: [`${prompts} with an image will fail: ${places.imageless}`]
    }
  }
  const found = yield* Effect.forEach(
    wanted.slice(0, askedAtMost),
    ([name, prompts]) => Effect.map(places.image(name), (image) => ({ name, prompts, image })),
    { concurrency: atOnce }
  )
  const missing = found.flatMap(({ prompts, image }) => (image._tag === "Missing" ? [{ prompts, why: image.why }] : []))
  const unasked = all.slice(askedAtMost)
  const images: Images = {
    lines: [
      ...some(
        found,
        ({ name, prompts, image }) => `${name}: ${counted(prompts, "prompt")}, ${toldOf(image)}`,
        (left) => `and ${counted(left.length, "more image")} of ${sum(left)}`
      ),
      ...(unasked.length + plan.otherImages > 0
        ? [
            `only the ${askedAtMost} most wanted were asked for; ${sum([...unasked, { prompts: plan.otherImages }])} name others`
          ]
        : [])
    ],
    problems: some(
      missing,
      ({ prompts, why }) => `${why} (${counted(prompts, "prompt")} will fail)`,
      (left) => `${counted(left.length, "more image")} cannot be had (${sum(left)} will fail)`
    )
  }
  return images
})
