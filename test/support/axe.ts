/**
 * axe in the page that is looked at: what it finds, by its rules for WCAG 2.2 A and AA and for good practice. Owns which rules
 * those are. axe's own driver for Playwright brings its half a megabyte anew for each look, and everything that a look found
 * in order back: together half of what a look takes.
 */
import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

type Findings = readonly (readonly [rule: string, elements: readonly string[]])[]

/**
 * Each broken rule with the elements that break it. None is good. Pages of the console have no frames. What is found while an answer
 * comes and colours pass into others is looked at once more: what is broken stays broken.
 */
export async function axeFindings(page: Page): Promise<Findings> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  const found = await look(page)
  return found.length === 0 ? found : look(page)
}

async function look(page: Page): Promise<Findings> {
  const violations = await page.evaluate(async (values) => {
    // A document tells the animations of its own tree, and not those in shadows.
    const trees: DocumentOrShadowRoot[] = []
    const visit = (root: Document | ShadowRoot): void => {
      trees.push(root)
      for (const { shadowRoot } of root.querySelectorAll('*')) if (shadowRoot) visit(shadowRoot)
    }
    visit(document)
    const passing = trees
      .flatMap((tree) => tree.getAnimations())
      .filter(({ effect }) => effect?.getComputedTiming().endTime !== Infinity)
    await Promise.allSettled(passing.map(({ finished }) => finished))
    const there = Reflect.get(window, 'axe') as typeof axe
    const { violations } = await there.run(document, {
      runOnly: { type: 'tag', values },
      resultTypes: ['violations'],
      iframes: false,
    })
    return violations.map(({ id, nodes }) => ({ id, targets: nodes.map(({ target }) => target.flat().join(' ')) }))
  }, tags)
  return violations.map(({ id, targets }) => [id, targets] as const)
}

/** Nothing is found, and nothing scrolls sideways. */
export async function expectClean(page: Page): Promise<void> {
  expect(await axeFindings(page)).toEqual([])
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
}
