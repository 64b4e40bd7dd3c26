/** A line of a data set is a prompt or a reason why not, and what is not ours travels along letter for letter. */
import { Either, FastCheck as fc } from "effect"
import { describe, expect, it } from "vitest"
import * as Prompt from "../../src/dataset/Prompt.ts"

const read = (line: string) => Either.getOrThrowWith(Prompt.parse(line), (why) => new Error(why))
const why = (line: string) => Either.match(Prompt.parse(line), { onLeft: (reason) => reason, onRight: () => "fits" })

describe("A line", () => {
  it("gives prompt, image and working directory, with blanks trimmed off the latter two.", () => {
    expect(read('{"prompt": " Say hi\\n", "image": " python:3 ", "cwd": " /work "}')).toEqual({
      text: " Say hi\n",
      image: "python:3",
      cwd: "/work",
      source: "{}"
    })
  })
  it("may call the image docker_image; image wins where it says anything.", () => {
    expect(read('{"prompt":"x","docker_image":"alpine"}').image).toBe("alpine")
    expect(read('{"prompt":"x","image":"debian","docker_image":"alpine"}').image).toBe("debian")
    expect(read('{"prompt":"x","image":"","docker_image":"alpine"}').image).toBe("alpine")
    expect(read('{"prompt":"x","image":null,"docker_image":null,"cwd":null}')).toEqual({
      text: "x",
      image: "",
      cwd: "",
      source: "{}"
    })
  })
  it.each([
    ["{prompt: 1}", "not JSON"],
    ['{"prompt": "x"', "not JSON"],
    ["[]", "not a JSON object"],
    ['"prompt"', "not a JSON object"],
    ["null", "not a JSON object"],
    ["{}", 'no "prompt"'],
    ['{"Prompt": "x"}', 'no "prompt"'],
    ['{"prompt": ""}', '"prompt" is blank'],
    ['{"prompt": " \\n\\t\\u3000"}', '"prompt" is blank'],
    ['{"prompt": 7}', '"prompt" is not a string'],
    ['{"prompt": null}', '"prompt" is not a string'],
    ['{"prompt": "x", "image": 7}', '"image" is not a string'],
    ['{"prompt": "x", "docker_image": ["a"]}', '"docker_image" is not a string'],
    ['{"prompt": "x", "cwd": {}}', '"cwd" is not a string']
  ])("that cannot be used says why: %s is %s.", (line, reason) => {
    expect(why(line)).toBe(reason)
  })
  it("has its lone surrogates replaced where a row shows them.", () => {
    expect(read('{"prompt":"a\\ud800b","image":"i\\udc00","cwd":"/\\ud800"}')).toMatchObject({
      text: "a\ufffdb",
      image: "i\ufffd",
      cwd: "/\ufffd"
    })
  })
})

describe("The other fields", () => {
  it.each([
    ['{"prompt":"x","id":12345678901234567890123}', '{"id":12345678901234567890123}'],
    ['{"id": 1.50e+3, "prompt": "x", "n": -0.0}', '{"id": 1.50e+3, "n": -0.0}'],
    [
      '{"a": {"prompt": "inner", "b": [1, {"c": "},{"}]}, "prompt": "x"}',
      '{"a": {"prompt": "inner", "b": [1, {"c": "},{"}]}}'
    ],
    ['{"a": "say \\"hi\\", \\\\", "prompt": "x"}', '{"a": "say \\"hi\\", \\\\"}'],
    ['{"a": 1, "a": 2, "prompt": "x"}', '{"a": 1, "a": 2}'],
    ['{"pro\\u006dpt": "x", "\\u0061": 1}', '{"\\u0061": 1}'],
    ['{"prompt": "y", "prompt": "x", "k": true}', '{"k": true}'],
    ['{"prompt": "x", "": [], "p": null, "q\\"}": {}}', '{"": [], "p": null, "q\\"}": {}}'],
    ['{"__proto__": {"prompt": 1}, "prompt": "x"}', '{"__proto__": {"prompt": 1}}'],
    ['  {  "prompt" : "x" , "tail" : [ ]  }  ', '{"tail" : [ ]}'],
    ['{"prompt":"x","image":"i","docker_image":"d","cwd":"/c"}', "{}"]
  ])("of %s come back letter for letter.", (line, source) => {
    const prompt = read(line)
    expect(prompt.source).toBe(source)
    expect(prompt.text).toBe("x")
  })
  it("of any object are the object without our own fields.", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), fc.nat(), (fields, where) => {
        const others = Object.entries(fields).filter(([key]) => !/^(prompt|image|docker_image|cwd)$/.test(key))
        const at = others.length === 0 ? 0 : where % others.length
        const line = JSON.stringify(Object.fromEntries([...others.slice(0, at), ["prompt", "x"], ...others.slice(at)]))
        expect(JSON.parse(read(line).source)).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(others))))
      }),
      { numRuns: 500 }
    )
  })
})
