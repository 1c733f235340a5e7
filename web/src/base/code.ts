// A view of a whole text of JSON: highlighting and the looks, with the colors of base.css.
import { json } from '@codemirror/lang-json';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { tags } from '@lezer/highlight';
import { looks } from './looks';

const TEXT = 'color-mix(in oklab, var(--ink), var(--configuring) 40%)';
const VALUE = 'color-mix(in oklab, var(--ink), var(--removing) 40%)';

const colors = HighlightStyle.define([
  { tag: tags.propertyName, fontWeight: '600' },
  { tag: tags.string, color: TEXT },
  { tag: [tags.number, tags.bool, tags.null], color: VALUE },
]);

/** Return the extensions of a whole text of JSON; an excerpt has only `looks`, because half an object cannot be parsed. */
export function jsonView(): Extension {
  return [json(), syntaxHighlighting(colors), looks];
}
