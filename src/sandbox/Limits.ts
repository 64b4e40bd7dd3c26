/** What one container may take of its machine. */
import { type ContainerOptions, SandboxError } from "./Sandbox.ts"

/** What is there to be had. */
export interface Supply {
  readonly cpus: number
  /** Bytes. */
  readonly memory: number
}

type Asked = Pick<ContainerOptions, "cpus" | "memory">

/** What a container may take where nothing is said, if the machine has as much. */
const usual: Supply = { cpus: 2, memory: 4 * 2 ** 30 }

const gigabytes = (bytes: number) => `${Math.floor(bytes / 2 ** 20) / 1024}g`

const beyond = (option: string, given: number | string, most: number | string, machine: string) =>
  new SandboxError({
    reason: "Unavailable",
    detail: `--${option}: given ${given}, allowed: at most the ${most} of ${machine}`
  })

/** Why a machine, as people call it, cannot give each container what is asked for; undefined when it can. */
export const exceeded = (
  { cpus = 0, memory = 0 }: Asked,
  supply: Supply,
  machine: string
): SandboxError | undefined => {
  if (cpus > supply.cpus) return beyond("cpus", cpus, supply.cpus, machine)
  if (memory > supply.memory) return beyond("memory", gigabytes(memory), gigabytes(supply.memory), machine)
  return undefined
}

/** What each container gets. */
export const granted = ({ cpus, memory }: Asked, supply: Supply): Supply => ({
  cpus: cpus ?? Math.min(usual.cpus, supply.cpus),
  memory: memory ?? Math.min(usual.memory, supply.memory)
})
