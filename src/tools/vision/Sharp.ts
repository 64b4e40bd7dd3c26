/** The image library, in a module of its own: it is loaded with the first picture, and may have no build for this platform. */
import sharp from "sharp"

// Pictures are seldom the same, and many threads for one take the processors from the others.
sharp.cache(false)
sharp.concurrency(1)

export { sharp }
