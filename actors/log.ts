/** Where the background says what an operator should know; who keeps it is bin/log.ts. Never with payloads or secrets. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}
