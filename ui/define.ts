/**
 * Registers the public elements. Importing this is the whole of embedding: `<signalbox-console>` is the app, the others
 * are its views alone. A name that is already taken is left alone.
 */
import { SignalboxConsole } from './console.ts'
import { define } from './elements/view.ts'
import { SignalboxAgents } from './pages/agents.ts'
import { SignalboxTask } from './pages/task.ts'
import { SignalboxTasks } from './pages/tasks.ts'

define('signalbox-task', SignalboxTask)
define('signalbox-tasks', SignalboxTasks)
define('signalbox-agents', SignalboxAgents)
define('signalbox-console', SignalboxConsole)
