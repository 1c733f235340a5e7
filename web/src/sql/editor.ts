// The editor of a query: loaded after the page, which has a text area until then.
import { acceptCompletion, autocompletion, completionKeymap, type Completion, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { keywordCompletionSource, schemaCompletionSource, sql, SQLDialect, type SQLNamespace } from '@codemirror/lang-sql';
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { search, searchKeymap } from '@codemirror/search';
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { looks } from '../base/looks';
import { toBrowser } from '../code/offsets';
import { FUNCTIONS, KEYWORDS, TYPES } from './words';

const dialect = SQLDialect.define({
  keywords: KEYWORDS, types: TYPES, builtin: FUNCTIONS.map(([name]) => name).join(' '),
  operatorChars: '+-*/%<>=~!@&|^:?', doubleDollarQuotedStrings: true, hashComments: false, slashComments: false, spaceAfterDashes: false,
});

const colors = HighlightStyle.define([
  { tag: tags.keyword, color: 'var(--configuring)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'color-mix(in oklab, var(--ink), var(--ready) 70%)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'color-mix(in oklab, var(--ink), var(--removing) 70%)' },
  { tag: [tags.typeName, tags.standard(tags.name)], color: 'color-mix(in oklab, var(--ink), var(--configuring) 50%)' },
  { tag: tags.comment, color: 'var(--muted)', fontStyle: 'italic' },
]);

const functions: readonly Completion[] = FUNCTIONS.map(([name, inner, meaning]) => ({
  label: name, detail: `(${inner})`, info: meaning, type: 'function', apply: `${name}(${inner})`,
}));
const BARE = /^[A-Za-z_]\w*$/;

/** Names and types: columns of the table, and fields of readings, as the server names them. */
export interface Names {
  readonly columns: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
}

export const quoted = (path: string): string => path.split('.').map((name) => (BARE.test(name) ? name : `"${name}"`)).join('.');

function spaceOf(names: Names): SQLNamespace {
  type Space = Record<string, { self: Completion; children: Space }>;
  const columns: Space = {};
  const put = (space: Space, name: string, detail: string): Space => {
    const entry = (space[name] ??= { self: { label: name, detail, type: 'property', apply: quoted(name) }, children: {} });
    return entry.children;
  };
  for (const [name, type] of Object.entries(names.columns)) put(columns, name, type);
  for (const [path, type] of Object.entries(names.fields)) {
    const parts = path.split('.');
    parts.reduce((space, name, at) => put(space, name, at === parts.length - 1 ? type : 'STRUCT'), put(columns, 'data', 'STRUCT'));
  }
  return { main: { readings: { self: { label: 'readings', detail: 'table', type: 'class' }, children: columns } } };
}

/** Complete whole paths of fields by any of their words, and functions. */
function wordsOf(names: Names): CompletionSource {
  const paths: Completion[] = Object.entries(names.fields).map(([path, type]) => ({ label: quoted(`data.${path}`), displayLabel: `data.${path}`, detail: type, type: 'property', boost: 2 }));
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\w"]+/);
    if (word === null && !context.explicit) return null;
    if (context.matchBefore(/\.[\w"]*/) !== null || quiet(context)) return null;
    return { from: word?.from ?? context.pos, options: [...paths, ...functions], validFor: /^[\w"]*$/ };
  };
}

/** Whether the cursor is in a text or comment. */
function quiet(context: CompletionContext): boolean {
  return /String|Comment/.test(syntaxTree(context.state).resolveInner(context.pos, -1).name);
}

function help(names: Names): Extension {
  const schema = { dialect, schema: spaceOf(names), defaultSchema: 'main', defaultTable: 'readings' };
  return autocompletion({
    override: [schemaCompletionSource(schema), wordsOf(names), keywordCompletionSource(dialect, true, (label, type) => ({ label, type: type === 'keyword' ? 'keyword' : 'type', boost: -1 }))],
    icons: false, activateOnTypingDelay: 60, interactionDelay: 0, maxRenderedOptions: 100,
  });
}

export interface Handle {
  text(): string;
  replace(text: string): void;
  insert(text: string): void;
  mark(position: number | null, message: string): void;
  know(names: Names): void;
  focus(): void;
  destroy(): void;
}

/** Open an editor in `parent` with `text`. */
export function openEditor(parent: HTMLElement, text: string, names: Names, actions: { run: () => void; save: () => void; changed: (text: string) => void }): Handle {
  const helping = new Compartment();
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of([
          { key: 'Mod-Enter', run: () => (actions.run(), true) },
          { key: 'Mod-s', run: () => (actions.save(), true) },
        ])),
        lintGutter(), lineNumbers(), history(), drawSelection(), indentOnInput(), indentUnit.of('  '), bracketMatching(), highlightActiveLine(), search(),
        EditorView.lineWrapping,
        sql({ dialect }), syntaxHighlighting(colors), looks,
        placeholder('SELECT … FROM readings'),
        helping.of(help(names)),
        // Tab accepts a completion, and else leaves the editor, as in every other field.
        keymap.of([{ key: 'Tab', run: acceptCompletion }, ...completionKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': 'Query in SQL', 'aria-multiline': 'true', autocapitalize: 'off', spellcheck: 'false' }),
        EditorView.updateListener.of((update) => { if (update.docChanged) actions.changed(update.state.doc.toString()); }),
      ],
    }),
  });
  return {
    text: () => view.state.doc.toString(),
    replace: (next) => { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next }, selection: { anchor: next.length } }); },
    insert: (piece) => { view.dispatch(view.state.replaceSelection(piece)); view.focus(); },
    mark: (position, message) => {
      const whole = view.state.doc.toString();
      const from = position === null ? null : Math.min(toBrowser(whole, position), whole.length);
      if (from === null) { view.dispatch(setDiagnostics(view.state, [])); return; }
      const word = /^"[^"]*"|^'[^']*'|^[\w.]+|^\S/.exec(whole.slice(from))?.[0].length ?? 0;
      const start = word === 0 ? Math.max(0, from - 1) : from;
      view.dispatch(setDiagnostics(view.state, [{ from: start, to: Math.max(from + word, start), severity: 'error', message }]));
      view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: 'nearest' }) });
    },
    know: (next) => { view.dispatch({ effects: helping.reconfigure(help(next)) }); },
    focus: () => { view.focus(); },
    destroy: () => { view.destroy(); },
  };
}
