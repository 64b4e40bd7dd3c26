/** Memory that is in use after a garbage collection, so that a test can say how many bytes a thing takes. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

setFlagsFromString("--expose_gc")
const collect: () => void = runInNewContext("gc")

/** Bytes of the heap and of all array buffers. */
export const inUse = (): number => {
  collect()
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
