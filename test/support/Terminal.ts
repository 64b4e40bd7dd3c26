/** The built command on a terminal of its own, by Python's pseudo-terminal: what it shows, and keys pressed when it asks. */
import { inject } from "vitest"
import type { Environment, Workplace } from "./Command.ts"

/** When the text has been shown, these keys are pressed; the next step looks only at what comes after. */
export type Step = readonly [shown: string, keys: string]

export interface Talk {
  readonly code: number
  /** All that was shown, control sequences included. */
  readonly shown: string
  /** The step that was waited for in vain; null when all came. */
  readonly missed: string | null
}

const script = `
import json, os, pty, select, struct, fcntl, termios, sys, time
given = json.load(sys.stdin)
pid, fd = pty.fork()
if pid == 0:
    os.execv(given["argv"][0], given["argv"])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
shown, at, missed, end = "", 0, None, time.monotonic() + 60
def more(seconds):
    global shown
    if not select.select([fd], [], [], seconds)[0]:
        return True
    try:
        data = os.read(fd, 65536)
    except OSError:
        return False
    shown += data.decode("utf-8", "replace")
    return len(data) > 0
for text, keys in given["steps"]:
    alive = True
    while text not in shown[at:]:
        alive = more(1)
        if not alive or time.monotonic() > end:
            missed = text
            break
    if missed is not None:
        break
    at = len(shown)
    time.sleep(0.05)
    for key in keys:
        os.write(fd, key.encode())
        time.sleep(0.005)
if missed is not None:
    os.kill(pid, 15)
while time.monotonic() < end and more(1):
    pass
_, status = os.waitpid(pid, 0)
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "shown": shown, "missed": missed}))
`

/** Talks with the command, to its end. */
export const talk = async (
  place: Workplace,
  argv: ReadonlyArray<string>,
  steps: ReadonlyArray<Step>,
  environment: Environment = {}
): Promise<Talk> => {
  const running = place.shell(`exec python3 -c '${script}'`, { TERM: "xterm", ...environment })
  running.child.stdin?.end(JSON.stringify({ argv: [process.execPath, inject("command"), ...argv], steps }))
  const { stdout, stderr } = await running.ended
  if (stdout === "") throw new Error(stderr)
  return JSON.parse(stdout)
}

export const enter = "\r"
export const down = "\u001b[B"
export const interrupt = "\u0003"
