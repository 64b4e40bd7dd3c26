/** The parts of undici that the transport uses, named one by one: a bundle keeps a CommonJS package's names no other way. */
export { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici"
