/**
 * The console's own page. Nothing else is on it, so keys pressed while nothing has focus are the console's, and the
 * document's title says where one is. Pages load when they are first shown; an embedding page uses define.ts instead.
 */
import { places, SignalboxConsole } from './console.ts'
import { define } from './elements/view.ts'

define('signalbox-console', SignalboxConsole)

const element = document.querySelector('signalbox-console')
const app = element?.app
if (app) {
  document.addEventListener('keydown', (event) => {
    if (event.target === document.body) app.keys.handle(event)
  })
  const entitle = (): void => {
    const place = places.find(({ pages }) => pages.includes(app.router.get().page))
    document.title = place ? `${place.label} · Signalbox` : 'Signalbox'
  }
  app.router.subscribe(entitle)
  entitle()
}
