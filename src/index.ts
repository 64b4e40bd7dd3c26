/** The public face for programs that compose us: the services, their layers, and the run. */
export * as Attempt from "./Attempt.ts"
export * as Agent from "./agent/Agent.ts"
export { Ending } from "./agent/Ending.ts"
export { ContentIndex } from "./dataset/ContentIndex.ts"
export * as ContentKey from "./dataset/ContentKey.ts"
export { Dataset, DatasetError, type DatasetService } from "./dataset/Dataset.ts"
export * as JsonlDataset from "./dataset/JsonlDataset.ts"
export type { Prompt } from "./dataset/Prompt.ts"
export {
  type Answer,
  type Ask,
  type Message,
  Model,
  ModelError,
  type ModelService,
  type Request,
  type ToolCall,
  type Usage
} from "./model/Model.ts"
export * as OpenAi from "./model/OpenAi.ts"
export * as Retry from "./model/Retry.ts"
export * as Scripted from "./model/Scripted.ts"
export * as Pipeline from "./Pipeline.ts"
export { make as runConfig, RunConfig, type Settings } from "./RunConfig.ts"
export * as Progress from "./report/Progress.ts"
export * as Statistics from "./report/Statistics.ts"
export * as Summary from "./report/Summary.ts"
export * as Distribution from "./sampling/Distribution.ts"
export { layer as samplerLayer, Sampler, type SamplerService } from "./sampling/Sampler.ts"
export * as Local from "./sandbox/Local.ts"
export * as Output from "./sandbox/Output.ts"
export {
  type Background,
  type ExecOptions,
  type ExecResult,
  FileError,
  Sandbox,
  SandboxError,
  Sandboxes,
  type SandboxService,
  type SandboxSpec
} from "./sandbox/Sandbox.ts"
export * as JsonlStore from "./store/Jsonl.ts"
export * as MemoryStore from "./store/Memory.ts"
export { Store, StoreError, type StoreService } from "./store/Store.ts"
export * as Tool from "./tools/Tool.ts"
export * as Toolbox from "./tools/Toolbox.ts"
export * as Toolset from "./tools/Toolset.ts"
export { Outcome } from "./trajectory/Outcome.ts"
export { Row } from "./trajectory/Trajectory.ts"
