/** The product's console for one person who is a crowd: rate limits are counted as ever, and never reached (crowd.ts). */
import { serveConsole } from '../../bin/console-process.ts'
import { runProcess } from '../../bin/process.ts'
import { crowd } from './crowd.ts'

await runProcess('signalbox', () => serveConsole(process.env, { limits: crowd }))
