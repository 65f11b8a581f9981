/** Opens a view's `<dialog>` modally once it is drawn, and hands its closing on: a dialog's own events stay in its root. */
import type { LitElement } from 'lit'

/** Call from `firstUpdated`. The element is expected to be removed by whoever hears `close`. */
export function openModal(host: LitElement): HTMLDialogElement | undefined {
  const dialog = host.renderRoot.querySelector('dialog')
  if (!dialog) return undefined
  dialog.addEventListener('close', () => host.dispatchEvent(new Event('close')))
  dialog.addEventListener('click', (event) => {
    // A click whose target is the dialog itself is on its backdrop: the content fills it.
    if (event.target === dialog) dialog.close()
  })
  dialog.showModal()
  return dialog
}

/** Keys pressed in a modal are the modal's: the console below must not act on them. */
export const keepKeys = (event: KeyboardEvent): void => event.stopPropagation()
