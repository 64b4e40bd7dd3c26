/** The container engine and the registries that tests use; `scripts/ci-services.sh` starts them and says where they are. */
import { describe as vitestDescribe } from "vitest"

const { CI, DOCKER_HOST, TEST_PODMAN_HOST, TEST_REGISTRY, TEST_PRIVATE_REGISTRY } = process.env

const there = Boolean(DOCKER_HOST && TEST_PODMAN_HOST && TEST_REGISTRY && TEST_PRIVATE_REGISTRY)
if (!there && CI !== undefined)
  throw new Error("no container engine: scripts/ci-services.sh names one in DOCKER_HOST and TEST_REGISTRY")
if (!there)
  console.log(
    "no DOCKER_HOST, TEST_PODMAN_HOST, TEST_REGISTRY and TEST_PRIVATE_REGISTRY (scripts/ci-services.sh): the tests of containers are skipped"
  )

/** Where the images of the tests are, such as localhost:5000. */
export const registry = TEST_REGISTRY ?? ""

/** A registry that asks for the login tester, secret. */
export const privateRegistry = TEST_PRIVATE_REGISTRY ?? ""

/** Address of a second engine, Podman. */
export const podman = TEST_PODMAN_HOST ?? ""

/** Tests that need the engine. */
export const describe = there ? vitestDescribe : vitestDescribe.skip

/** Image of the tests by its short name. */
export const image = (name: string): string => `${registry}/batch-runner/${name}:1`
