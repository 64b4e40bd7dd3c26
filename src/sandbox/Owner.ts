/** Which process made a sandbox, and whether that process is dead for certain: what a dead one left may be cleared away. */
import { readFileSync } from "node:fs"
import { hostname } from "node:os"
import { Either } from "effect"
import * as Proc from "./Proc.ts"

// Process ids count within one pid namespace; its number keeps runners in other containers on the same machine apart.
const space = () => Proc.pidNamespace("self")?.replace(/\D/g, "") ?? "0"

/** This process among all that this machine has run since it was started: `<pid>-<its start>-<pid namespace>`. */
export const here = (): string => `${process.pid}-${Proc.stat("self")?.started ?? 0}-${space()}`

/** Whether there is no process of that number; where the system does not tell its start, that must do. */
const isFree = (pid: number): boolean =>
  Either.match(
    Either.try(() => process.kill(pid, 0)),
    {
      onLeft: (cause) => String(cause).includes("ESRCH"),
      onRight: () => false
    }
  )

/** Whether the process that `owner` begins with is dead for certain, given that it ran on this machine. */
export const isDead = (owner: string): boolean => {
  const [pid, started, within] = owner.split("-")
  if (pid === undefined || within !== space() || !/^[1-9]\d*$/.test(pid)) return false
  return started === "0" ? isFree(Number(pid)) : Proc.stat(Number(pid))?.started !== Number(started)
}

/** This machine since its last start, as no other machine is named. */
export const machine = (): string =>
  Either.getOrElse(
    Either.try(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    hostname
  )
