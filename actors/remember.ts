/** Memory of a bound: the oldest makes room, and what is said again is new. For what may be forgotten, because it is found out again. */
export function remember<K, V>(memory: Map<K, V>, key: K, value: V, limit: number): void {
  memory.delete(key)
  memory.set(key, value)
  const [oldest] = memory.keys()
  if (memory.size > limit && oldest !== undefined) memory.delete(oldest)
}
