/** Sound that a speaker made: its kind by content, and the names of files that hold it. Pure. */

/** A kind of file, by the extension that it has unless another is asked for. */
export type Kind = "mp3" | "wav" | "opus" | "flac" | "aac"

/** Extensions that say a kind. */
const extensions: Readonly<Record<string, Kind>> = {
  mp3: "mp3",
  wav: "wav",
  opus: "opus",
  ogg: "opus",
  oga: "opus",
  flac: "flac",
  aac: "aac"
}

/** Extensions that a path may have. */
export const known: ReadonlyArray<string> = Object.keys(extensions)

/** The extension of a path, in lower case; empty for none. */
export const extensionOf = (path: string): string => /[^/]\.([A-Za-z0-9]{1,8})$/.exec(path)?.[1]?.toLowerCase() ?? ""

/** The kind that an extension says; undefined for none that is known. */
export const kindOf = (extension: string): Kind | undefined =>
  Object.hasOwn(extensions, extension) ? extensions[extension] : undefined

/** What kind of sound the bytes are; undefined for none. */
export const detect = (bytes: Uint8Array): Kind | undefined => {
  const head = Buffer.from(bytes.subarray(0, 12)).toString("latin1")
  if (head.startsWith("RIFF") && head.slice(8, 12) === "WAVE") return "wav"
  if (head.startsWith("OggS")) return "opus"
  if (head.startsWith("fLaC")) return "flac"
  if (head.startsWith("ID3")) return "mp3"
  const [first = 0, second = 0] = bytes
  if (first !== 0xff || (second & 0xe0) !== 0xe0) return undefined
  // Where MP3 names its layer, ADTS has zeros.
  return (second & 0x06) === 0 ? "aac" : "mp3"
}

/** `path` with the extension that fits the kind: its own where that does. */
export const named = (path: string, kind: Kind): string => {
  const extension = extensionOf(path)
  if (kindOf(extension) === kind) return path
  return `${kindOf(extension) === undefined ? path : path.slice(0, -extension.length - 1)}.${kind}`
}

/** A WAV file that was written to a pipe says that it is endless; this says how long it is. */
export const finished = (bytes: Uint8Array): Uint8Array => {
  const wav = Buffer.from(bytes)
  const data = wav.subarray(0, 4096).indexOf("data", 12, "latin1")
  if (data < 0 || data + 8 > wav.length) return wav
  wav.writeUInt32LE(wav.length - 8, 4)
  wav.writeUInt32LE(wav.length - data - 8, data + 4)
  return wav
}
