/** The part of playwright-core that drives a browser, named by itself: loaded with the first page that a run opens. */
export { chromium } from "playwright-core"
