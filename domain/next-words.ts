/**
 * What an actor answers to, in words: who or what sends an event, and on which condition it counts. Owns one table for the
 * events of every kind; an event that it does not know is told by its own name. Which events those are is domain/chart.ts.
 */
import { describeEvent, spaced } from './chart.ts'

/** By the event's type, for every kind alike; `kind type` where a kind means something of its own. */
const events: Readonly<Record<string, string>> = {
  interrupted: 'its worker is gone and the lease ran out while the work was under way',
  opened: 'the agent opens its stream, after failures',
  closed: 'that stream is over',
  rearmed: 'a person’s reply was delivered',
  heard: 'a push or a look brings news of the task',
  found: 'a look shows the task, which nobody follows',
  settled: 'the task is finished, as told another way',
  wanted: 'a task of this agent is unfinished, or a message is looked for',
  claim: 'a person takes the task',
  release: 'its owner gives the task back',
  assign: 'a person gives the task to somebody',
  setDue: 'a person sets a due time',
  clearDue: 'a person takes the due time away',
  escalate: 'the escalation rule hands it on',
  settle: 'the agent has finished the task',
}

/** What its work tries to do, by the work's name. */
const works: Readonly<Record<string, string>> = {
  discover: 'reading the agent’s card',
  deliver: 'sending the request',
  follow: 'following the agent’s stream',
  read: 'reading the task',
  close: 'reading the finished task as a whole',
  check: 'asking for each unfinished task',
  list: 'reading the agent’s list',
  register: 'asking the agent to call',
  remove: 'telling the agent not to call any more',
}

const timers: Readonly<Record<string, string>> = {
  backoff: 'the wait after a failure is over',
  absence: 'the wait for an agent that is away is over',
  readPause: 'the pause between two reads is over',
  untilDue: 'the due time passes',
  checkPause: 'the pause between two looks is over',
  breath: 'others have had their turn',
}

const lastName = (type: string): string => type.split('.').at(-1) ?? type

/** "sending the request ends", "the due time passes", "a person takes the task". */
export function eventWords(type: string): string {
  const known = events[type]
  if (known !== undefined) return known
  const { kind, label } = describeEvent(type)
  if (kind === 'after') {
    const delay = label.replace(/^after /, '')
    return timers[delay] ?? `the timer "${spaced(delay)}" rings`
  }
  if (kind === 'done' || kind === 'error') {
    const name = lastName(type)
    const doing = works[name] ?? `its work "${spaced(name)}"`
    return kind === 'done' ? `${doing} ends` : `${doing} fails in a way that nobody foresaw`
  }
  return spaced(label)
}

/** What an actor's work does: "sending the request". */
export const workWords = (work: string): string => works[work] ?? spaced(work)

/** What has to be so for an event to count, by the guard's name: one means the same in every kind. */
const guards: Readonly<Record<string, string>> = {
  agentFound: 'the card could be read',
  agentGone: 'the agent is gone',
  agentRuledOut: 'the card or a rule of this console rules the agent out',
  triesLeft: 'a try is left',
  mayBeginAnew: 'it has not ended process after process',
  agentReplied: 'the agent answered',
  nothingWasDone: 'it is certain that nothing was done',
  answerWasForAnother: 'the answer is another skill’s',
  isOwner: 'it is the owner',
  isSameDue: 'the time is the same',
  hasTarget: 'the rule names somebody',
  settledMeanwhile: 'the task finished meanwhile',
  agentHasNoPush: 'the agent offers no push, or answered that it has none',
  nobodyKnows: 'the agent or its task is gone, or too large to be read',
  taskIsOver: 'the task has ended',
  agentRegistered: 'the agent took it',
  registerTriesLeft: 'a try is left',
  agentHeard: 'the agent heard it',
  removeTriesLeft: 'a try is left',
  onlyItsListMayHelp: 'no task could be read and the list is due',
  listMayTellOfOneTask: 'one task could not be read, others could, and the list is due',
  allButOneWereRead: 'all tasks were asked for, and one could not be read',
  oneTaskFailed: 'one task could not be read and others could',
  agentFailed: 'the agent could not be read',
  moreTasksThanTime: 'there are more tasks to ask for, and it is time for the list',
  moreTasks: 'there are more tasks to ask for',
  tasksStayUnread: 'the tasks could not be read before',
  listWasCutShort: 'it takes longer than this reader waits',
  passGoesOn: 'it could be read and there are more tasks to ask for',
  nothingUnfinished: 'there is nothing unfinished',
  listIsDue: 'it is time for the list',
  toldInPart: 'not all of the task was told',
  isAtWork: 'the agent waits for nobody',
  isUnasked: 'the agent had asked nothing',
  mayBeRead: 'it was not too large to be read',
  isFollowed: 'its stream is being read',
  endedWhole: 'another saw the task end, and all of it',
  endedInPart: 'another saw the task end, and not all of it',
  taskFinished: 'the task is finished',
  wholeNotSeen: 'the task is finished and was not read as a whole',
  answeredMeanwhile: 'the agent waits and was answered meanwhile',
  agentWaits: 'the agent waits for a person',
  cannotStream: 'the agent does not stream',
  silentForLong: 'the agent has been silent for long',
  lookedFor: 'it was read',
  closingTriesLeft: 'a try is left',
  keepsFailing: 'the same loop fails again and again',
}

/** Of what ended so that a person has to decide: its machine is done with it. */
export const nextByPerson =
  'Nothing is sent again by itself. Where it may have left, it is looked for at the agent for as long as looks are to come. A person settles it, or asks the agent anew with another command.'

/** Guards are questions, so the name of one that is not known is almost words: `triesLeft` → "tries left". */
export const guardWords = (guard: string): string => guards[guard] ?? spaced(guard)

/** The timer's own name in a row is the event it will send. */
export const timerWords = (id: string): string => eventWords(id)
