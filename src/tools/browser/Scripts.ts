/** What is asked of a page in its own language, and the shape that its answers must have. */
import { Schema } from "effect"

/** Where a page is scrolled to. */
export const Position = Schema.Struct({
  top: Schema.Number,
  window: Schema.Number,
  total: Schema.Number,
  moved: Schema.Number
})

/** Scrolls the page by most of a window's height; where the page itself does not move, its largest part that does. */
export const scroll = (direction: "up" | "down"): string => `(() => {
  const sign = ${direction === "down" ? 1 : -1}
  const page = document.scrollingElement || document.documentElement
  const places = [page]
  let count = 0
  for (const each of document.querySelectorAll("*")) {
    if (++count > 20000) break
    if (each === page || each.scrollHeight <= each.clientHeight + 20 || each.clientHeight < 100) continue
    if (!/auto|scroll|overlay/.test(getComputedStyle(each).overflowY)) continue
    places.push(each)
  }
  const area = (each) => each.clientHeight * each.clientWidth
  const [first, ...rest] = places
  rest.sort((a, b) => area(b) - area(a))
  let told
  for (const each of [first, ...rest.slice(0, 20)]) {
    const window = each === page ? innerHeight : each.clientHeight
    const before = each.scrollTop
    each.scrollTo({ top: before + sign * Math.round(window * 0.9), behavior: "instant" })
    const now = { top: each.scrollTop, window, total: each.scrollHeight, moved: each.scrollTop - before }
    told = told || now
    if (now.moved !== 0) return now
  }
  return told
})()`

/** Images of one frame. */
export const Images = Schema.Struct({
  total: Schema.Number,
  images: Schema.Array(
    Schema.Struct({ src: Schema.String, alt: Schema.String, width: Schema.Number, height: Schema.Number })
  )
})

export const imagesAtMost = 100

export const images = `(() => {
  const all = [...document.images]
  const brief = (src) => src.startsWith("data:")
    ? src.slice(0, 40) + "… (" + src.length + " characters)"
    : src.slice(0, 1000)
  return {
    total: all.length,
    images: all.slice(0, ${imagesAtMost}).map((each) => ({
      src: brief(String(each.currentSrc || each.src)),
      alt: String(each.alt).slice(0, 300),
      width: Number(each.naturalWidth || each.width),
      height: Number(each.naturalHeight || each.height)
    }))
  }
})()`

/** The text of a page whose tree cannot be had. */
export const text = `String(document.body ? document.body.innerText : "").slice(0, 20000)`
