/**
 * The console process: configuration in, a listening server out, a drained system at the end. Started by the launcher
 * (signalbox.ts) or directly on PostgreSQL. Prints nothing but logs; a start that fails is one line on stderr and exit 1.
 */
import { serveConsole } from './console-process.ts'
import { runProcess } from './process.ts'

await runProcess('signalbox', () => serveConsole(process.env))
