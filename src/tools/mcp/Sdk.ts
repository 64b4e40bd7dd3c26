/** The parts of the MCP SDK that are used, named one by one and loaded with the first server. */
export { Client } from "@modelcontextprotocol/sdk/client/index.js"
export { SSEClientTransport, SseError } from "@modelcontextprotocol/sdk/client/sse.js"
export { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
export type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
export { JSONRPCMessageSchema, McpError, ResultSchema } from "@modelcontextprotocol/sdk/types.js"
