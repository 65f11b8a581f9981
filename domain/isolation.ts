/**
 * Names inside sentences. Whoever chose a name chose its direction, too: without isolation a name written from right to left turns
 * the words around it. Where markup is at hand `<bdi>` does the same [Unicode UAX 9, FSI and PDI].
 */
export const isolated = (name: string): string => `\u2068${name}\u2069`
