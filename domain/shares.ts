/**
 * How a process's places for one kind of work are shared: the one rule that takes them by (actors/loop/room.ts) and that people
 * are told of. Owns no place and no words.
 */

/** Of one process and one kind. `taken`: by all; `perAgent`: as many as one agent may ever have. */
export interface SharedPlaces {
  readonly places: number
  readonly perAgent: number
  readonly taken: number
}

/**
 * How many of them one agent may have at the moment: at most a third of what is free for everybody else, so that each that hangs
 * and takes all it may leaves three quarters of what it found, and whoever comes next finds some: of 256, fifteen after ten. As
 * their requests end by and by, they come to have equal shares (the dynamic threshold of shared-memory switches, Choudhury and
 * Hahne 1998). Where one may have all of them, work takes turns instead (actors/loop/turns.ts).
 */
export function shareOf({ places, perAgent, taken }: SharedPlaces): number {
  if (perAgent >= places) return perAgent
  return Math.max(1, Math.min(perAgent, Math.floor((places - taken) / 3)))
}
