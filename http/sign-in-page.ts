/**
 * What a person sees when signing in did not work: the sentence, and the way to begin anew. A page without scripts, for it must
 * show when everything else is in doubt. Owns its markup and policy; its look is ui/public/sign-in.css.
 */
import type { FastifyRequest } from 'fastify'

/** Fetch metadata [W3C]: browsers send it with what goes into the address bar, scripts cannot. */
export const isNavigation = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean =>
  headers['sec-fetch-mode'] === 'navigate'

export const signInPagePolicy = [
  "default-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "style-src 'self'",
  "img-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
const escaped = (text: string): string => text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? '')

/** `sentence`: one of ours. `again`: the way to begin anew, on this origin. */
export const signInPage = (sentence: string, again: string): string => `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Sign-in · Signalbox</title>
    <link rel="icon" href="/favicon.svg" type="image/svg+xml">
    <link rel="stylesheet" href="/sign-in.css">
  </head>
  <body>
    <main>
      <img src="/favicon.svg" alt="" width="32" height="32">
      <h1>You are not signed in</h1>
      <p role="alert">${escaped(sentence)}</p>
      <p class="more">Nothing was changed. If it happens again, ask an administrator.</p>
      <a href="${escaped(again)}">Start again</a>
    </main>
  </body>
</html>
`
