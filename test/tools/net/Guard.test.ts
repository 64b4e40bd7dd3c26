import { Effect, Either, FastCheck, TestClock, TestContext } from "effect"
import { describe, expect, it } from "vitest"
import * as Address from "../../../src/tools/net/Address.ts"
import * as Guard from "../../../src/tools/net/Guard.ts"

const guard = Guard.make({ allowPrivate: false })
const refused = (url: string) => Either.isLeft(guard.url(url))

describe("An address", () => {
  it("is public only when all of the internet can reach it.", () => {
    const local = [
      ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254"],
      ...["169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.0.0.1", "192.0.2.1", "198.18.0.1"],
      ...["203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255"],
      ...["::", "::1", "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0:8.8.8.8"],
      ...["64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::8.8.8.8", "2002:7f00:1::"],
      ...["2002:808:808::", "2001::1", "2001:db8::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1"],
      ...["ff02::1", "100::1", "5f00::1", "", "localhost", "1.2.3.4.5", "999.1.1.1"]
    ]
    expect(local.filter(Address.isPublic)).toEqual([])
    const open = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.169.0.1", "223.255.255.254"]
    const open6 = ["2606:4700::1111", "2001:4860:4860::8888", "[2a00::1]", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
    expect([...open, ...open6].filter((each) => !Address.isPublic(each))).toEqual([])
  })
  it("is judged the same in every notation that a URL may write it in.", () => {
    const octet = FastCheck.integer({ min: 0, max: 255 })
    const written = (value: number, base: number): string =>
      base === 8 ? `0${value.toString(8)}` : base === 16 ? `0x${value.toString(16)}` : String(value)
    FastCheck.assert(
      FastCheck.property(
        FastCheck.oneof(
          FastCheck.tuple(octet, octet, octet, octet),
          FastCheck.tuple(FastCheck.constantFrom(10, 127, 169, 172, 192, 100, 0, 255), octet, octet, octet)
        ),
        FastCheck.array(FastCheck.constantFrom(8, 10, 16), { minLength: 4, maxLength: 4 }),
        ([a, b, c, d], bases) => {
          const plain = `${a}.${b}.${c}.${d}`
          const open = Address.isPublic(plain)
          const last = (c << 8) | d
          const whole = ((a << 24) >>> 0) + (b << 16) + last
          const [one = 10, two = 10, three = 10, four = 10] = bases
          const others = [
            [written(a, one), written(b, two), written(c, three), written(d, four)].join("."),
            [written(a, one), written(b, two), written(last, three)].join("."),
            [written(a, one), written((b << 16) + last, two)].join("."),
            written(whole, four),
            `[::ffff:${plain}]`,
            `[64:ff9b::${plain}]`
          ]
          for (const host of others) {
            expect([host, refused(`http://user:pw@${host}:8080/x`)]).toEqual([host, !open])
          }
          expect(Address.isPublic(`::${plain}`)).toBe(false)
        }
      ),
      { numRuns: 500 }
    )
  })
})

describe("The guard", () => {
  it("refuses what is no http, local names in every spelling, and texts that are no URL.", () => {
    const bad = [
      ...[
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/html,x"
      ],
      ...["about:blank", "ws://example.com", "view-source:http://example.com", "example.com", "//example.com", "", " "],
      ...["http://localhost", "http://LOCALHOST:80/", "http://a.localhost/", "http://localhost./", "http://①②⑦.0.0.1/"],
      ...[
        "http://127.1/",
        "http://[::]/",
        "http://0/",
        "http://[::ffff:a9fe:a9fe]/latest/meta-data",
        "http://127.0.0.1./"
      ]
    ]
    expect(bad.filter((url) => !refused(url))).toEqual([])
    expect(refused("http://example.com:1234/")).toBe(false)
  })
  it("leaves user name and password out of a URL.", () => {
    expect(Either.getOrThrow(guard.url(" https://user:pw@example.com/a?b#c ")).href).toBe("https://example.com/a?b#c")
  })
  it("says in a sentence what is wrong.", () => {
    const said = (url: string) => Either.getOrThrow(Either.flip(guard.url(url))).message
    expect(said("ftp://x.org")).toBe("ftp: addresses are not reached, only http and https")
    expect(said("http://10.1.2.3/")).toContain("10.1.2.3 is a private or local address")
    expect(said("x".repeat(10_000)).length).toBeLessThan(400)
  })
  it("refuses a name as soon as one of its addresses is refused, and one that nobody knows.", async () => {
    const names: Readonly<Record<string, ReadonlyArray<string>>> = {
      "open.test": ["8.8.8.8", "2606:4700::1"],
      "mixed.test": ["8.8.8.8", "10.0.0.1"],
      "mapped.test": ["::ffff:127.0.0.1"],
      "empty.test": []
    }
    const resolving = Guard.make({
      allowPrivate: false,
      resolve: async (host) =>
        (names[host] ?? (await Promise.reject<ReadonlyArray<string>>(new Error("ENOTFOUND")))).map((address) => ({
          address,
          family: address.includes(":") ? 6 : 4
        }))
    })
    const ended = (host: string) =>
      Effect.runPromise(
        Effect.match(resolving.resolve(host), { onFailure: (e) => e.noHost, onSuccess: (a) => a.length })
      )
    expect(await Promise.all(["open.test", "mixed.test", "mapped.test", "empty.test", "none.test"].map(ended))).toEqual(
      [2, false, false, true, true]
    )
    expect(await Promise.all(["127.0.0.1", "0177.0.0.1", "[::1]", "8.8.8.8", "0x08080808"].map(ended))).toEqual([
      false,
      false,
      false,
      1,
      1
    ])
    const remote = (url: string) => Effect.runPromise(Effect.isSuccess(resolving.remote(url)))
    // Who resolves names elsewhere may know more of them, but none of a private network.
    expect(await remote("http://none.test/")).toBe(true)
    const never = [
      "http://mixed.test/",
      "http://intranet/",
      "http://db.internal/",
      "http://x.local./",
      "http://10.0.0.1/"
    ]
    expect((await Promise.all(never.map(remote))).filter((passes) => passes)).toEqual([])
  })
  it("lets everything pass where private networks are allowed, but other schemes.", async () => {
    const open = Guard.make({ allowPrivate: true })
    expect(Either.isRight(open.url("http://127.0.0.1:3000/"))).toBe(true)
    expect(Either.isRight(open.url("http://localhost:3000/"))).toBe(true)
    expect(Either.isLeft(open.url("file:///etc/passwd"))).toBe(true)
    expect(await Effect.runPromise(open.resolve("[::1]"))).toEqual([{ address: "::1", family: 6 }])
  })
  it("gives a name up that takes too long to look up.", async () => {
    const slow = Guard.make({ allowPrivate: false, resolve: () => new Promise(() => {}) })
    const error = await Effect.gen(function* () {
      const looking = yield* Effect.fork(Effect.flip(slow.resolve("slow.test")))
      yield* TestClock.adjust("10 seconds")
      return yield* looking
    }).pipe(Effect.provide(TestContext.TestContext), Effect.runPromise)
    expect(error).toMatchObject({ noHost: true, message: "there is no host slow.test" })
  })
})
