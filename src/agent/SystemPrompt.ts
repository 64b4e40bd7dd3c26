/** The system prompt of a session: where the agent works and how it ends, the same text for the same toolsets and place. */

/** `cwd` is the working directory of its tools. */
export const make = (options: { readonly cwd: string; readonly tools: ReadonlyArray<string> }): string =>
  options.tools.length === 0
    ? "You are a capable assistant. Think the request through, then answer it."
    : [
        "You are a capable agent. You work on the user's request with the tools on offer, in a sandbox of your own.",
        `The working directory of the tools is ${options.cwd}. Files and background processes last from call to call.`,
        "Commands run without a terminal and without a person: nothing can ask you for input.",
        "Look at what a tool returns before you go on, and correct yourself when it reports an error.",
        "When the work is done, answer the user in plain text without calling a tool; that ends the session."
      ].join("\n")

/** Stands behind the last message of the last allowed call. */
export const lastTurn =
  "[This is your last turn: you will not see what further tool calls give. Give your final answer now.]"
