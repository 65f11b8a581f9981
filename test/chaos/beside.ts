/** Somebody who talks while something else is under way. Owns the pace, not what is said. */

/** As a person does: without a breath it would take a processor for itself, and nothing more is seen. */
const breathMs = 20

/** Talks again and again until the work is over; says how often that was answered. Rejects when either fails. */
export async function beside<T>(
  work: Promise<T>,
  talk: () => Promise<void>,
): Promise<{ readonly result: T; readonly answered: number }> {
  let over = false
  const talking = (async () => {
    let answered = 0
    while (!over) {
      await talk()
      answered += 1
      await new Promise((resolve) => setTimeout(resolve, breathMs))
    }
    return answered
  })()
  const result = await work.finally(() => {
    over = true
  })
  return { result, answered: await talking }
}
