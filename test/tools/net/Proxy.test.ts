import { describe, expect, it } from "vitest"
import * as Proxy from "../../../src/tools/net/Proxy.ts"

const of = (url: string, environment: Proxy.Environment) => Proxy.of(new URL(url), environment)

describe("A proxy of the environment", () => {
  it("is taken by the scheme of an address, the name in small letters first.", () => {
    const both = { HTTP_PROXY: "http://a:1", HTTPS_PROXY: "http://b:2", https_proxy: "http://c:3" }
    expect(of("http://example.com/", both)).toBe("http://a:1")
    expect(of("https://example.com/", both)).toBe("http://c:3")
    expect(of("https://example.com/", { HTTP_PROXY: "http://a:1", HTTPS_PROXY: " " })).toBe("http://a:1")
    expect(of("http://example.com/", { HTTPS_PROXY: "http://b:2" })).toBeUndefined()
  })
  it("is never taken for this machine itself.", () => {
    const environment = { http_proxy: "http://a:1" }
    const own = ["http://localhost:80/", "http://x.localhost/", "http://127.0.0.1/", "http://[::1]/"]
    expect(own.map((url) => of(url, environment))).toEqual(own.map(() => undefined))
  })
  it("is not taken for what NO_PROXY names.", () => {
    const direct = (url: string, NO_PROXY: string) => of(url, { HTTP_PROXY: "http://a:1", NO_PROXY }) === undefined
    expect(direct("http://example.com/", "*")).toBe(true)
    expect(direct("http://example.com/", "other.org, example.com")).toBe(true)
    expect(direct("http://www.example.com/", "example.com")).toBe(true)
    expect(direct("http://www.example.com/", ".example.com")).toBe(true)
    expect(direct("http://badexample.com/", "example.com")).toBe(false)
    expect(direct("http://example.com:8080/", "example.com:8080")).toBe(true)
    expect(direct("http://example.com/", "example.com:8080")).toBe(false)
    expect(direct("http://10.0.0.1/", "10.0.0.1")).toBe(true)
    expect(direct("http://[2606:4700::1]/", "[2606:4700::1]")).toBe(true)
    expect(direct("http://example.com/", "")).toBe(false)
  })
})
