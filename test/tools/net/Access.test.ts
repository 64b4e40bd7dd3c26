/** The run's own endpoint beside its model, and a service by its paths. */
import { Effect, Redacted } from "effect"
import { expect, it } from "vitest"
import * as Access from "../../../src/tools/net/Access.ts"
import * as Api from "../../../src/tools/net/Api.ts"
import * as PageServer from "../../support/PageServer.ts"

const asking = (access: Access.Access, use: (service: Access.Service) => Effect.Effect<string>) =>
  Effect.runPromise(
    Effect.scoped(Effect.flatMap(Api.make({ environment: {} }), (api) => use(Access.open(api, access, 5))))
  )

it("An endpoint is asked by the password in its address, which no message shows, below its path and query", async () => {
  const server = await PageServer.start(({ headers }) => ({ status: 400, body: { error: headers.authorization } }))
  const { host } = new URL(server.url)
  const access = Access.ofEndpoint({ baseUrl: `http://me:s%40same@${host}/v1/?version=2#top`, apiKey: undefined })
  const said = await asking(access, (service) =>
    Effect.map(Effect.orDie(service.call({ path: "/speech", json: { a: 1 } })), (reply) =>
      [reply.status, service.refusal(reply).error, service.failure("it is s@same").error].join("; ")
    )
  )
  expect(said).toBe(`400; ${host} answers HTTP 400: Basic ***; it is ***`)
  expect(server.asked).toMatchObject([
    { method: "POST", path: "/v1/speech?version=2", headers: { authorization: `Basic ${btoa("me:s@same")}` } }
  ])
})

it("An endpoint is asked by its key, or by none", async () => {
  const server = await PageServer.start(() => ({ body: "" }))
  for (const apiKey of [Redacted.make("sk-key"), undefined]) {
    await asking(Access.ofEndpoint({ baseUrl: `${server.url}/v1`, apiKey }), (service) =>
      Effect.as(Effect.orDie(service.call({ path: "/x" })), "")
    )
  }
  expect(server.asked.map(({ headers }) => headers.authorization)).toEqual(["Bearer sk-key", undefined])
})
