// The first line of every npm script: stops on a Node.js that cannot run the rest, and says what to do. Runs on any
// Node.js, so old syntax only. It owns no other check.
'use strict'
var needed = [22, 19]
var found = process.versions.node.split('.').map(Number)
if (found[0] < needed[0] || (found[0] === needed[0] && found[1] < needed[1])) {
  console.error(
    'signalbox: Node.js ' +
      needed.join('.') +
      '.0 or newer is required; this is ' +
      process.version +
      '. `npm ci` brings one for `npm run`; with --omit=optional it is left out, so install a newer Node.js.',
  )
  process.exit(1)
}
