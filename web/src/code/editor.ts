import { defaultKeymap, history, historyKeymap, redo, undo } from '@codemirror/commands';
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { Compartment, EditorState } from '@codemirror/state';
import { Decoration, drawSelection, EditorView, MatchDecorator, ViewPlugin, type DecorationSet, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, type ViewUpdate } from '@codemirror/view';
import { jsonView } from '../base/code';
import { Requester } from '../base/requests';
import { Draft, type Finding } from './draft.svelte';
import { dotted, entryPath, pathOf, sections } from './entries';
import type { Schema } from './fields';
import { renew, troublesOf, type EditorForm } from './form';
import { toBrowser, type Change } from './offsets';
import type { Path } from './tree';

const CHECK = 250; // milliseconds of silence before the server is asked
const READ = 120; // milliseconds of silence before list and form read the text again
const MOST_CHECKED = 256 * 1024; // characters that the server checks while a person types

interface Checked {
  findings: Finding[];
  patch: Record<string, string>;
}

const COMMENT = Decoration.mark({ class: 'cm-comment' });
const comments = new MatchDecorator({
  regexp: /"(?:[^"\\]|\\.)*"?|(\/\/.*|\/\*.*?(?:\*\/|$))/g, // the server knows them; the grammar of JSON does not
  decorate: (add, from, to, match) => { if (match[1] !== undefined) add(from, to, COMMENT); },
});
const commentView = ViewPlugin.define<{ marks: DecorationSet; update: (update: ViewUpdate) => void }>((view) => ({
  marks: comments.createDeco(view),
  update(update) { this.marks = comments.updateDeco(update, this.marks); },
}), { decorations: (plugin) => plugin.marks });

export class Editor {
  private readonly view: EditorView;
  private readonly checking: Requester<Checked>;
  private readonly help = new Compartment(); // what is loaded when the editor gets the focus
  private helped = false;
  private asked = false; // for completions, perhaps before they are loaded
  private readonly saved: string;
  private leaving = false;
  private readonly draft: Draft;
  private reading: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly page: EditorForm) {
    const { area, form, place, review } = page;
    this.saved = area.defaultValue;
    this.checking = new Requester(page.check, CHECK);
    const label = area.getAttribute('aria-label') ?? '';
    const described = area.getAttribute('aria-describedby') ?? '';
    this.view = new EditorView({
      parent: place,
      state: EditorState.create({
        doc: area.value,
        extensions: [
          lintGutter(),
          lineNumbers(),
          foldGutter(),
          history(),
          drawSelection(),
          indentOnInput(),
          indentUnit.of('  '),
          bracketMatching(),
          highlightActiveLine(),
          highlightActiveLineGutter(),
          this.help.of([]),
          keymap.of([
            { key: 'Ctrl-Space', run: () => { this.asked = true; return false; } },
            { key: 'Mod-s', run: () => (form.requestSubmit(review), true) },
            ...foldKeymap,
            ...lintKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          jsonView(),
          commentView,
          EditorView.contentAttributes.of({ 'aria-label': label, 'aria-describedby': described, tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            this.updated(update);
          }),
          EditorView.domEventHandlers({ focus: () => { this.assist(); } }),
        ],
      }),
    });
    this.draft = new Draft({
      text: () => this.text,
      change: (changes) => { this.change(changes); },
      show: (from, to) => { this.view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: 'center' }) }); },
      undo: () => { undo(this.view); },
      redo: () => { redo(this.view); },
    }, page.part, page.token, page.context);
  }

  private get text(): string {
    return this.view.state.doc.toString();
  }

  start(): void {
    const { area, form, bench } = this.page;
    area.hidden = true;
    for (const part of form.querySelectorAll<HTMLElement>('[data-plain]')) part.hidden = true; // list and form are better, and the text is checked while typing
    for (const field of form.querySelectorAll<HTMLInputElement>('[data-plain] :is(input, select, button)')) field.disabled = true;
    form.classList.add('with-form');
    form.dataset['view'] = this.draft.view;
    bench.hidden = false;
    form.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLElement>('a[data-at]') : null;
      if (link === null) return;
      event.preventDefault();
      this.follow(link);
    });
    form.addEventListener('submit', () => (this.leaving = true));
    addEventListener('beforeunload', (event) => {
      if (!this.leaving && this.text !== this.saved) event.preventDefault();
    });
    addEventListener('pageshow', () => (this.leaving = false));
    addEventListener('hashchange', () => { this.goTo(location.hash); });
    document.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("#running a[href^='#']") : null;
      if (link === null) return;
      event.preventDefault();
      this.goTo(link.hash);
    });
    this.followMachine();
    this.check(true);
    if (innerWidth <= 46 * 16) this.draft.view = 'list';
    if (location.hash.length > 1) this.goTo(location.hash);
    else {
      const [first] = sections(this.draft.text, this.draft.root);
      if (first?.entries[0] !== undefined) this.draft.selected = first.entries[0].path;
    }
    void this.loadBench();
  }

  private async loadBench(): Promise<void> {
    const { bench, form } = this.page;
    const [{ mountWorkbench }, reply] = await Promise.all([import('./workbench'), fetch(this.page.schema)]);
    if (reply.ok) this.draft.schema = (await reply.json()) as Schema;
    mountWorkbench(bench, this.draft, (view) => { form.dataset['view'] = view; });
    if (location.hash.length > 1) this.goTo(location.hash); // now the field is there
  }

  private updated(update: ViewUpdate): void {
    if (update.docChanged) {
      this.page.area.value = this.text;
      this.check();
      clearTimeout(this.reading);
      this.reading = setTimeout(() => { this.draft.renew(); }, READ);
    }
    if (update.selectionSet && !update.docChanged && this.view.hasFocus) this.draft.follow(update.state.selection.main.head);
  }

  /** Make changes of the form, which are undone like those of the text. */
  private change(changes: readonly Change[]): void {
    this.view.dispatch({ changes: [...changes], userEvent: 'input.form', scrollIntoView: false });
  }

  /** Show which resources do not work, as the page receives it. */
  private followMachine(): void {
    const running = document.getElementById('running');
    if (running === null) return;
    const read = (): void => {
      this.draft.troubles = troublesOf(running);
      this.draft.online = running.dataset['online'] === 'yes';
      this.draft.running = this.draft.online && running.dataset['runs'] === 'yes';
    };
    read();
    new MutationObserver(read).observe(running, { subtree: true, childList: true, attributes: true });
  }

  // ---- problems

  private check(now = false): void {
    if (this.view.state.doc.length > MOST_CHECKED) {
      this.checking.stop();
      this.draft.findings = []; // those of a shorter text; the review has all
      return;
    }
    this.checking.send(
      () => ({ text: this.text }),
      (answer) => {
        const text = this.text;
        const diagnostics = answer.findings.map((finding): Diagnostic => {
          const from = toBrowser(text, finding.start);
          return { from, to: Math.max(from, toBrowser(text, finding.end)), severity: finding.severity, message: finding.text };
        });
        this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
        this.draft.findings = answer.findings;
        renew(answer.patch);
      },
      now,
    );
  }

  // ---- completions and search: a fifth of the scripts of the page, which only a person who edits needs

  private assist(): void {
    if (this.helped) return;
    this.helped = true;
    const before = this.view.state.doc;
    import('./help').then(({ helpOf, resume }) => {
      this.view.dispatch({ effects: this.help.reconfigure(helpOf(this.page.complete)) });
      if (this.asked || this.view.state.doc !== before) resume(this.view, this.asked); // a fast typist was there first
    }, () => { this.helped = false; }); // did not arrive: with the next focus again
  }

  // ---- links of the list of problems and of the running configuration

  private follow(link: HTMLElement): void {
    const text = this.text;
    const anchor = toBrowser(text, Number(link.dataset['at']));
    const head = toBrowser(text, Number(link.dataset['to'] ?? link.dataset['at']));
    this.view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
    this.draft.renew();
    const path = pathOf(this.draft.root, link.dataset['path'] ?? '');
    if (!this.open(path)) this.focusText();
  }

  private focusText(): void {
    this.draft.view = 'text';
    this.page.form.dataset['view'] = 'text';
    this.view.focus();
  }

  /** Select the entry of a path, and focus the field of the path; false if it has no field. */
  private open(path: Path): boolean {
    const entry = entryPath(this.draft.root, path);
    if (entry.length === 0) return false;
    this.draft.selected = entry;
    this.draft.adding = false;
    this.draft.view = 'form';
    requestAnimationFrame(() => { // the form has drawn the entry
      for (let length = path.length; length >= entry.length; length--) {
        const field = document.getElementById(`field-${dotted(path.slice(0, length))}`);
        if (field === null) continue;
        for (let fold = field.closest('details'); fold !== null; fold = fold.parentElement?.closest('details') ?? null) fold.open = true;
        field.focus();
        return;
      }
    });
    return true;
  }

  /** Go to the place that a path after # names; `resource=` and a name is the entry of that name. */
  private goTo(hash: string): void {
    const words = decodeURIComponent(hash.slice(1));
    const { text, root } = this.draft;
    const name = words.startsWith('resource=') ? words.slice(9) : undefined;
    const path = name === undefined ? pathOf(root, words) : sections(text, root).flatMap((each) => each.entries).find((each) => each.name === name)?.path ?? [];
    if (path.length === 0) return;
    this.draft.show(path);
    this.open(path);
  }
}
