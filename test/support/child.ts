/** How a test starts a script of the product as a process of its own. Owns Node.js's options, not the processes. */

/**
 * A started process lives for seconds: V8's optimizing compiler for WebAssembly would still be at work on PGlite when it
 * ends, 2 s of a processor each time. A user's process runs with it.
 */
export const childArgs = (script: string, ...args: readonly string[]): string[] => ['--liftoff-only', script, ...args]
