/** Ids as this house writes them, in letters of either case; whoever keeps one keeps it in small letters [RFC 9562, 4]. */
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

export const isUuid = (text: string): boolean => uuid.test(text)
