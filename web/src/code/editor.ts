import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit } from '@codemirror/language';
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint';
import { Compartment, EditorState } from '@codemirror/state';
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers, type ViewUpdate } from '@codemirror/view';
import { jsonView } from '../base/code';
import { Requester } from '../base/requests';
import { linkOf, renew, type EditorForm } from './form';
import { changed, toBrowser } from './offsets';

const CHECK = 250; // milliseconds of silence before the server is asked

interface Finding {
  start: number;
  end: number;
  severity: 'error' | 'warning';
  text: string;
}

interface Checked {
  findings: Finding[];
  patch: Record<string, string>;
}

export class Editor {
  private readonly view: EditorView;
  private readonly checking: Requester<Checked>;
  private readonly help = new Compartment(); // what is loaded when the editor gets the focus
  private helped = false;
  private readonly saved: string;
  private leaving = false;

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
            { key: 'Mod-s', run: () => (form.requestSubmit(review), true) },
            ...foldKeymap,
            ...lintKeymap,
            ...historyKeymap,
            ...defaultKeymap,
          ]),
          jsonView(),
          EditorView.contentAttributes.of({ 'aria-label': label, 'aria-describedby': described, tabindex: '0' }),
          EditorView.updateListener.of((update) => {
            this.updated(update);
          }),
          EditorView.domEventHandlers({ focus: () => { this.assist(); } }),
        ],
      }),
    });
  }

  private get text(): string {
    return this.view.state.doc.toString();
  }

  start(): void {
    const { area, form, resource, add } = this.page;
    area.hidden = true;
    for (const button of form.querySelectorAll<HTMLElement>('[data-plain]')) button.hidden = true; // the text is checked while typing
    form.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLElement>('a[data-at]') : null;
      if (link === null) return;
      event.preventDefault();
      this.follow(link);
    });
    resource.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault(); // the first button of the form, which Enter would press, is the review
      form.requestSubmit(add);
    });
    form.addEventListener('submit', (event) => {
      if (event.submitter !== add) {
        this.leaving = true;
        return;
      }
      event.preventDefault();
      void this.added(new FormData(form, add));
    });
    addEventListener('beforeunload', (event) => {
      if (!this.leaving && this.text !== this.saved) event.preventDefault();
    });
    addEventListener('pageshow', () => (this.leaving = false));
    document.addEventListener('click', (event) => {
      const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>("#running a[href^='#']") : null;
      if (link === null) return;
      event.preventDefault();
      this.goTo(link.hash);
    });
    this.check(true);
    if (location.hash.length > 1) this.goTo(location.hash);
  }

  private updated(update: ViewUpdate): void {
    if (!update.docChanged) return;
    this.page.area.value = this.text;
    this.check();
  }

  // ---- problems

  private check(now = false): void {
    this.checking.send(
      () => ({ text: this.text }),
      (answer) => {
        const text = this.text;
        const diagnostics = answer.findings.map((finding): Diagnostic => {
          const from = toBrowser(text, finding.start);
          return { from, to: Math.max(from, toBrowser(text, finding.end)), severity: finding.severity, message: finding.text };
        });
        this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
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
      if (this.view.state.doc !== before) resume(this.view); // a fast typist was there first
    }, () => { this.helped = false; }); // did not arrive: with the next focus again
  }

  // ---- links of the outline and of the list of problems

  private follow(link: HTMLElement): void {
    const text = this.text;
    const anchor = toBrowser(text, Number(link.dataset['at']));
    const head = toBrowser(text, Number(link.dataset['to'] ?? link.dataset['at']));
    this.view.focus();
    this.view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
  }

  private goTo(hash: string): void {
    const link = linkOf(this.page.form, decodeURIComponent(hash.slice(1)));
    if (link !== undefined) this.follow(link);
  }

  // ---- adding

  private async added(body: FormData): Promise<void> {
    const { form, error, resource } = this.page;
    let answer: { error?: string; text?: string; start?: number };
    try {
      const fields = new URLSearchParams([...body].map(([name, value]) => [name, typeof value === 'string' ? value : '']));
      const reply = await fetch(form.getAttribute('action') ?? '', { method: 'POST', body: fields, headers: { accept: 'application/json' } });
      answer = (await reply.json()) as typeof answer;
    } catch {
      answer = { error: 'The cloud does not respond. Try again.' };
    }
    error.textContent = answer.error ?? '';
    if (answer.text === undefined) return;
    const anchor = toBrowser(answer.text, answer.start ?? 0);
    this.view.focus();
    this.view.dispatch({ changes: changed(this.text, answer.text), userEvent: 'input.paste' });
    this.view.dispatch({ selection: { anchor }, effects: EditorView.scrollIntoView(anchor, { y: 'center' }) });
    resource.value = '';
    this.check(true);
  }
}
