/** Modal's sandboxes against a server of our own that speaks its protocol, with real processes behind it. */
import { afterAll, beforeAll } from "vitest"
import * as Modal from "../../src/sandbox/Modal.ts"
import { keys, ModalServer } from "../support/modal/Server.ts"
import { ofImage, suite } from "./suite.ts"
const server = new ModalServer()
beforeAll(async () => {
  await server.listen()
  process.env.MODAL_SERVER_URL = server.url
  process.env.MODAL_TOKEN_ID = keys.id
  process.env.MODAL_TOKEN_SECRET = keys.secret
  process.env.MODAL_CONFIG_PATH = "/nonexistent"
})
afterAll(() => server.close())
const options = { run: "r", network: true, cpus: undefined, memory: undefined, lifetime: 600 }
suite("modal", ofImage(Modal.layer(options), "python:3.11-slim"))
