// Completions, which the server finds, and search: loaded when the editor gets the focus for the first time.
import { acceptCompletion, autocompletion, completionKeymap, startCompletion, type Completion, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete';
import { search, searchKeymap } from '@codemirror/search';
import type { Extension } from '@codemirror/state';
import { keymap, type EditorView } from '@codemirror/view';
import { Requester } from '../base/requests';
import { toBrowser, toServer } from './offsets';

const BEGINS = /["\w$:]$/; // after what the completions are shown while typing

interface Choice {
  label: string;
  detail: string;
  meaning: string;
  insert: string;
  cursor: number;
}

interface Choices {
  start: number;
  end: number;
  choices: Choice[];
}

/** Return the extensions; `path` is where the server completes. */
export function helpOf(path: string): Extension {
  const completing = new Requester<Choices>(path, 0);
  return [
    search(),
    autocompletion({ override: [(context) => complete(completing, context)], activateOnTypingDelay: 60, interactionDelay: 0, maxRenderedOptions: 200 }),
    // Tab leaves the editor, as in every other field, unless it accepts a completion.
    keymap.of([{ key: 'Tab', run: acceptCompletion }, ...completionKeymap, ...searchKeymap]),
  ];
}

/** Complete what was typed, or `asked` for, before the extensions were there. */
export function resume(view: EditorView, asked: boolean): void {
  const { head } = view.state.selection.main;
  if (asked || BEGINS.test(view.state.sliceDoc(Math.max(0, head - 1), head))) startCompletion(view);
}

async function complete(completing: Requester<Choices>, context: CompletionContext): Promise<CompletionResult | null> {
  const text = context.state.doc.toString();
  if (!context.explicit && !BEGINS.test(text.slice(Math.max(0, context.pos - 1), context.pos))) return null;
  const answer = await completing.ask({ text, cursor: toServer(text, context.pos) });
  if (answer === null || context.aborted) return null;
  const from = toBrowser(text, answer.start);
  const to = toBrowser(text, answer.end);
  const typed = text.slice(from, context.pos).replace(/^"/, '');
  if (!context.explicit && answer.choices.length === 1 && answer.choices[0]?.label === typed) return null;
  return { from, to: Math.max(to, context.pos), filter: false, options: answer.choices.map(option) };
}

function option(choice: Choice): Completion {
  return {
    label: choice.label,
    detail: choice.detail,
    ...(choice.meaning ? { info: choice.meaning } : {}),
    apply: (view, _, from, to) => {
      const cursor = from + toBrowser(choice.insert, choice.cursor);
      view.dispatch({ changes: { from, to, insert: choice.insert }, selection: { anchor: cursor }, userEvent: 'input.complete' });
      const around = view.state.sliceDoc(cursor - 1, cursor + 1);
      if (/^["{[]["}\]]$/.test(around)) startCompletion(view);
    },
  };
}
