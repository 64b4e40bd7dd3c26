/** The part of the plugin that is used: it comes without types. */
declare module "@joplin/turndown-plugin-gfm" {
  import type Turndown from "turndown"
  export const gfm: Turndown.Plugin
}
