/**
 * A2A's messages in their 1.0 shape [a2a.proto v1.0.1], which is the one that the rest of the product knows, whatever an agent speaks. Only
 * shapes: reading a peer's JSON into them is wire.ts, writing them for a 0.3 agent v0_3.ts and v0_3-rest.ts.
 */

/** One content of `text`, `data` (any JSON, also null), `url` or `raw`; none when a peer sent a part we do not know. */
export interface Part {
  text?: string
  data?: unknown
  url?: string
  /** Standard padded base64. */
  raw?: string
  mediaType?: string
  filename?: string
  metadata?: Record<string, unknown>
  /** Ours, and on no wire: it cannot be read, in a sentence. Then it has no content. */
  unreadable?: string
}

export interface Message {
  messageId: string
  contextId?: string
  taskId?: string
  role: 'ROLE_USER' | 'ROLE_AGENT'
  parts: Part[]
  metadata?: Record<string, unknown>
  extensions?: string[]
  referenceTaskIds?: string[]
}

export interface TaskStatus {
  /** `TASK_STATE_*`; a state that we do not know is kept as the peer wrote it; what it means is domain/task.ts. */
  state: string
  message?: Message
  timestamp?: string
}

export interface Artifact {
  artifactId: string
  name?: string
  description?: string
  parts: Part[]
  metadata?: Record<string, unknown>
  extensions?: string[]
}

export interface Task {
  id: string
  contextId?: string
  status: TaskStatus
  artifacts?: Artifact[]
  history?: Message[]
  metadata?: Record<string, unknown>
}

export interface StatusUpdate {
  taskId: string
  contextId?: string
  status: TaskStatus
  metadata?: Record<string, unknown>
}

export interface ArtifactUpdate {
  taskId: string
  contextId?: string
  artifact: Artifact
  append?: boolean
  lastChunk?: boolean
  metadata?: Record<string, unknown>
}

export type StreamResponse =
  | { task: Task }
  | { message: Message }
  | { statusUpdate: StatusUpdate }
  | { artifactUpdate: ArtifactUpdate }

export interface PushConfig {
  tenant?: string
  id?: string
  taskId?: string
  url: string
  token?: string
  authentication?: { scheme: string; credentials?: string }
}

export interface SendConfiguration {
  acceptedOutputModes?: string[]
  taskPushNotificationConfig?: PushConfig
  /** Unset: the server's default; 0: none; n: the newest n. */
  historyLength?: number
  returnImmediately?: boolean
}

export interface SendRequest {
  tenant?: string
  message: Message
  configuration?: SendConfiguration
  metadata?: Record<string, unknown>
}

export interface TaskPage {
  tasks: Task[]
  /** Empty on the last page. */
  nextPageToken: string
  pageSize: number
  totalSize: number
  /** Entries that cannot be read and are left out, and why the first cannot; absent where there are none. */
  unread?: { readonly count: number; readonly reason: string }
}
