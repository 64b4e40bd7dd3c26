import * as Docker from "../../src/sandbox/Docker.ts"
import { ofImage, suite } from "./suite.ts"

const docker = Docker.layer({ run: "test", network: true, cpus: undefined, memory: undefined, lifetime: 600 })
suite("docker", ofImage(docker, "localhost/sandbox-test:busybox"))
