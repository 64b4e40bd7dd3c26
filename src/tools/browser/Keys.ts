/** Names of keys as models write them, as Playwright takes them. Pure. */

const names: Readonly<Record<string, string>> = {
  enter: "Enter",
  return: "Enter",
  esc: "Escape",
  escape: "Escape",
  tab: "Tab",
  space: "Space",
  spacebar: "Space",
  backspace: "Backspace",
  delete: "Delete",
  del: "Delete",
  insert: "Insert",
  home: "Home",
  end: "End",
  pageup: "PageUp",
  pgup: "PageUp",
  pagedown: "PageDown",
  pgdn: "PageDown",
  up: "ArrowUp",
  down: "ArrowDown",
  left: "ArrowLeft",
  right: "ArrowRight",
  arrowup: "ArrowUp",
  arrowdown: "ArrowDown",
  arrowleft: "ArrowLeft",
  arrowright: "ArrowRight",
  ctrl: "Control",
  control: "Control",
  alt: "Alt",
  option: "Alt",
  shift: "Shift",
  meta: "Meta",
  cmd: "Meta",
  command: "Meta",
  win: "Meta"
}

const single = (key: string): string => {
  const known = names[key.toLowerCase().replace(/[\s_-]/g, "")]
  if (known !== undefined) return known
  return /^f([1-9]|1[0-2])$/i.test(key) ? key.toUpperCase() : key
}

/** One key, or several joined by `+`: `enter` → `Enter`, `ctrl+a` → `Control+a`. */
export const normalise = (given: string): string => {
  const text = given === " " ? "Space" : given.trim()
  if (text === "+" || text.length <= 1) return text
  const parts = text.endsWith("++") ? [...text.slice(0, -2).split("+"), "+"] : text.split(/\s*\+\s*/)
  const last = parts.at(-1) ?? ""
  const held = parts.slice(0, -1).map(single)
  // A shortcut means the letter's key, whatever case it is written in.
  const shortcut = held.length > 0 && !held.includes("Shift") && /^[A-Z]$/.test(last)
  return [...held, shortcut ? last.toLowerCase() : single(last)].join("+")
}

/** Whether a key puts in what lies in the clipboard, which all sessions of a browser share. */
export const pastes = (key: string): boolean => {
  const parts = key.split("+").map((part) => part.trim())
  const has = (pattern: RegExp) => parts.some((part) => pattern.test(part))
  return (has(/^(Control|Meta)/i) && has(/^(Key)?V$/i)) || (has(/^Shift/i) && has(/^Insert$/i)) || has(/^Paste$/i)
}
