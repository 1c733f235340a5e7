// The view of a difference, which is loaded with the first one that a person sees.
import { MergeView, unifiedMergeView } from '@codemirror/merge';
import { EditorState, type Extension } from '@codemirror/state';
import { EditorView, lineNumbers } from '@codemirror/view';
import { looks } from '../base/looks';
import { excerpt, type Excerpt, type Line } from './excerpts';

const NARROW = '(max-width: 58rem)'; // here both sides are in one column

function linesOf(table: HTMLTableElement): Line[] {
  return [...table.rows].map((row) => {
    if (row.className === 'gap') return { sign: '@', old: null, new: null, text: '' };
    const [old, fresh, sign, text] = [...row.cells].map((cell) => cell.textContent);
    return { sign: sign?.trim() === '' ? ' ' : (sign ?? ' ').trim(), old: Number(old) || null, new: Number(fresh) || null, text: text ?? '' };
  });
}

function side(part: Excerpt, label: string): Extension {
  return [
    lineNumbers({ formatNumber: (line) => part.numbers[line - 1] ?? '' }),
    EditorState.readOnly.of(true),
    EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true', tabindex: '0' }),
    looks,
  ];
}

/** Replace a table, whose lines the server has compared, by both sides with the changed words marked. */
export function show(table: HTMLTableElement): void {
  const lines = linesOf(table);
  const [before, after] = [excerpt(lines, 'old'), excerpt(lines, 'new')];
  const parent = document.createElement('div');
  parent.className = 'merged';
  if (matchMedia(NARROW).matches) {
    const changes = unifiedMergeView({ original: before.text, mergeControls: false, gutter: true, syntaxHighlightDeletions: false });
    new EditorView({ parent, doc: after.text, extensions: [side(after, 'Changes, before and after'), changes] });
  } else {
    new MergeView({
      parent,
      a: { doc: before.text, extensions: side(before, 'Before') },
      b: { doc: after.text, extensions: side(after, 'After') },
      gutter: true,
      highlightChanges: true,
    });
  }
  const former = table.closest<HTMLElement>('.scroll') ?? table;
  parent.style.minHeight = `${former.offsetHeight}px`; // what follows, such as the button Save, stays under the pointer
  former.replaceWith(parent);
}
