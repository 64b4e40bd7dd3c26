/** The parts of undici that fetching uses, named one by one: a bundle keeps a CommonJS package's names no other way. */
export { Agent, type Dispatcher, fetch, ProxyAgent } from "undici"
