/**
 * Downloads under way, each with an open file and a piece of it in memory: as many as people wait for, and so many of one person.
 * Somebody who takes a few bytes now and then is no stalled reader (stalls.ts), and keeps a file open for as long.
 */
import type { ServerResponse } from 'node:http'
import { Refusal } from '../domain/refusal.ts'
import { ownConnection } from './watch.ts'

export class Downloads {
  readonly #atOnce: number
  readonly #underWay = new Map<string, number>()

  constructor(atOnce: number) {
    this.#atOnce = atOnce
  }

  /** Takes a place until the response is over. Refuses where one person has them all. */
  async begin(person: string, response: ServerResponse): Promise<void> {
    await ownConnection(response)
    const count = this.#underWay.get(person) ?? 0
    if (count >= this.#atOnce) throw new Refusal('rate.limit')
    if (response.destroyed) return
    this.#underWay.set(person, count + 1)
    response.once('close', () => this.#end(person))
  }

  #end(person: string): void {
    const left = (this.#underWay.get(person) ?? 1) - 1
    if (left > 0) this.#underWay.set(person, left)
    else this.#underWay.delete(person)
  }
}
