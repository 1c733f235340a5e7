"use strict";
/* The configuration editor: line numbers, marks under errors, completions at the cursor. The server checks the text and
   finds the completions. The form also works without this script. */
(() => {
  const { $, $$ } = page;
  const form = $("form[data-editor]");
  if (!form) return;
  const area = $("textarea", form), sheet = $(".sheet", form), layer = $("[data-layer]", form), list = $("#choices");
  const lines = $("[data-lines]", form), signs = $("[data-signs]", form), gutter = $(".gutter", form), say = $("[data-say]", form);
  const saved = area.defaultValue;
  const CHECK = 250, COMPLETE = 60; // milliseconds of silence before the server is asked
  let findings = [];
  let before = area.value;
  let leaving = false;

  for (const button of $$("[data-plain]", form)) button.hidden = true; // the text is checked while typing

  /* Offsets of the server count characters, those of the browser UTF-16 units. */
  const toServer = (text, unit) => [...text.slice(0, unit)].length;
  function toBrowser(text, offset) {
    if (/^[\0-\uD7FF\uE000-\uFFFF]*$/.test(text)) return offset;
    let unit = 0;
    for (const character of text) {
      if (offset-- <= 0) break;
      unit += character.length;
    }
    return unit;
  }

  /* Sends one request at a time: a new one cancels the previous one. */
  function requester(address, pause) {
    let timer = 0, request = null;
    const stop = () => { clearTimeout(timer); if (request) request.abort(); };
    const send = (body, handle, now) => {
      stop();
      timer = setTimeout(async () => {
        request = new AbortController();
        try {
          const reply = await fetch(address, { method: "POST", body: JSON.stringify(body()), signal: request.signal, headers: { accept: "application/json" } });
          if (reply.ok) handle(await reply.json());
        } catch (error) {
          if (error.name !== "AbortError" && !(error instanceof TypeError)) throw error; // the next key asks again
        }
      }, now ? 0 : pause);
    };
    return { send, stop };
  }
  const checking = requester(form.dataset.check, CHECK);
  const completing = requester(form.dataset.complete, COMPLETE);

  /* ---- line numbers and marks */

  const height = () => parseFloat(getComputedStyle(area).lineHeight);

  function number() {
    const count = area.value.split("\n").length;
    if (lines.dataset.count !== String(count)) {
      lines.dataset.count = count;
      lines.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
      gutter.style.width = `${Math.max(3, String(count).length + 1)}ch`;
    }
  }

  function mark() {
    const text = area.value, parts = [];
    let at = 0; // only the text up to the last mark is laid out a second time
    for (const finding of [...findings].sort((a, b) => a.from - b.from)) {
      if (finding.from < at || finding.to > text.length || finding.to <= finding.from) continue;
      const underlined = document.createElement("mark");
      underlined.className = finding.severity;
      underlined.textContent = text.slice(finding.from, finding.to);
      parts.push(text.slice(at, finding.from), underlined);
      at = finding.to;
    }
    layer.replaceChildren(...parts);
    const severities = new Map(); // by line
    for (const finding of findings) {
      const line = text.slice(0, finding.from).split("\n").length;
      if (severities.get(line) !== "error") severities.set(line, finding.severity);
    }
    const top = parseFloat(getComputedStyle(area).paddingTop), high = height();
    signs.replaceChildren(...[...severities].map(([line, severity]) => {
      const sign = document.createElement("i");
      sign.className = severity;
      sign.dataset.line = line;
      sign.style.top = `${top + (line - 1) * high}px`;
      return sign;
    }));
  }

  function scroll() {
    const down = `translateY(${-area.scrollTop}px)`;
    lines.style.transform = signs.style.transform = down;
    layer.style.transform = `translate(${-area.scrollLeft}px, ${-area.scrollTop}px)`;
  }

  function check(now = false) {
    checking.send(() => ({ text: area.value }), (answer) => {
      const text = area.value;
      findings = answer.findings.map((finding) => ({ ...finding, from: toBrowser(text, finding.start), to: toBrowser(text, finding.end) }));
      mark();
      for (const [id, html] of Object.entries(answer.patch)) {
        const element = document.getElementById(id);
        morph.node(element, morph.parse(html, element.parentNode));
      }
    }, now);
  }

  /* Findings after the cursor move with typed text until the next check. */
  function shift() {
    const grown = area.value.length - before.length, cursor = area.selectionStart;
    before = area.value;
    for (const finding of findings) {
      if (finding.from >= cursor - Math.max(grown, 0)) { finding.from += grown; finding.to += grown; }
    }
  }

  /* ---- changing the text with undo */

  function replace(from, to, text, cursor = from + text.length) {
    const old = area.value.slice(from, to); // inserting many lines takes seconds: replace only the changed part
    let same = 0, tail = 0;
    while (same < Math.min(old.length, text.length) && old[same] === text[same]) same++;
    while (tail < Math.min(old.length, text.length) - same && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
    if (/[\uD800-\uDBFF]/.test(old[same - 1])) same--; // do not split the two units of a character
    if (/[\uDC00-\uDFFF]/.test(old[old.length - tail])) tail--;
    [from, to, text] = [from + same, to - tail, text.slice(same, text.length - tail)];
    area.focus();
    area.setSelectionRange(from, to);
    const done = text ? document.execCommand("insertText", false, text) : from === to || document.execCommand("delete");
    if (!done) {
      area.setRangeText(text, from, to, "end");
      area.dispatchEvent(new Event("input"));
    }
    area.setSelectionRange(cursor, cursor);
  }

  function newline() {
    const at = area.selectionStart, text = area.value;
    const line = text.slice(text.lastIndexOf("\n", at - 1) + 1, at);
    const indent = line.match(/^[ \t]*/)[0];
    const last = text.slice(0, at).trimEnd().slice(-1), next = text.slice(area.selectionEnd).match(/^[ \t]*(.?)/)[1];
    const deeper = last === "{" || last === "[";
    const start = `\n${indent}${deeper ? "  " : ""}`;
    const end = deeper && (next === "}" || next === "]") ? `\n${indent}` : "";
    replace(at, area.selectionEnd, start + end, at + start.length);
  }

  /* ---- completions at the cursor */

  let choices = null; // as the server answered, with the offsets of the browser
  let chosen = 0;

  function close() {
    completing.stop();
    choices = null;
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
    area.removeAttribute("aria-controls");
  }

  function complete(now = false) {
    completing.send(
      () => ({ text: area.value, cursor: toServer(area.value, area.selectionStart) }),
      (answer) => {
        const text = area.value;
        const typed = text.slice(toBrowser(text, answer.start), area.selectionStart).replace(/^"/, "");
        const exact = answer.choices.length === 1 && answer.choices[0].label === typed;
        if (!answer.choices.length || (exact && !now) || document.activeElement !== area) {
          if (now && !answer.choices.length) say.textContent = "No completions here.";
          return close();
        }
        choices = { ...answer, from: toBrowser(text, answer.start), to: toBrowser(text, answer.end) };
        show();
      },
      now,
    );
  }

  function show() {
    list.replaceChildren(...choices.choices.map((choice, index) => {
      const item = document.createElement("li"), name = document.createElement("b"), detail = document.createElement("em");
      item.id = `choice-${index}`;
      item.setAttribute("role", "option");
      name.textContent = choice.label;
      detail.textContent = choice.detail;
      item.append(name, detail);
      if (choice.meaning) {
        const meaning = document.createElement("small");
        meaning.textContent = choice.meaning;
        item.append(meaning);
      }
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); accept(index); });
      return item;
    }));
    list.hidden = false;
    place();
    area.setAttribute("aria-controls", "choices");
    choose(0);
    say.textContent = `${choices.choices.length} choices. ${choices.choices[0].label}`;
  }

  /* Below the cursor, or above it if there is no space; measured in the layer, which has the same text. */
  function place() {
    layer.replaceChildren(area.value.slice(0, choices.from), "\u200b");
    const range = document.createRange();
    range.selectNode(layer.lastChild);
    const at = range.getBoundingClientRect(), home = sheet.getBoundingClientRect();
    mark();
    const left = Math.max(4, Math.min(at.left - home.left, home.width - list.offsetWidth - 4));
    const below = at.bottom - home.top + 2, room = home.height - below;
    list.style.maxHeight = `${Math.max(120, Math.min(240, Math.max(room, at.top - home.top) - 8))}px`;
    list.style.left = `${left}px`;
    list.style.top = `${room < list.offsetHeight && at.top - home.top > room ? Math.max(2, at.top - home.top - list.offsetHeight - 2) : below}px`;
  }

  function choose(index) {
    chosen = (index + choices.choices.length) % choices.choices.length;
    $$("li", list).forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
    const item = list.children[chosen];
    item.scrollIntoView({ block: "nearest" });
    area.setAttribute("aria-activedescendant", item.id);
    const choice = choices.choices[chosen];
    say.textContent = [choice.label, choice.detail, choice.meaning].filter(Boolean).join(", ");
  }

  function accept(index) {
    const choice = choices.choices[index], { from, to } = choices;
    close();
    const cursor = from + toBrowser(choice.insert, choice.cursor);
    replace(from, to, choice.insert, cursor);
    close(); // the inserted text must not open the list again
    if (/["{[]$/.test(area.value.slice(0, cursor)) && /^["}\]]/.test(area.value.slice(cursor))) complete(true);
  }

  area.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const open = choices !== null;
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); complete(true); }
    else if (event.key === "s" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit($("[value=review]", form)); }
    else if (open && event.key === "Escape") { event.preventDefault(); close(); }
    else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) { event.preventDefault(); choose(chosen + (event.key === "ArrowDown" ? 1 : -1)); }
    else if (open && (event.key === "Enter" || event.key === "Tab") && !event.shiftKey) { event.preventDefault(); accept(chosen); }
    else if (event.key === "Enter" && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); newline(); }
  });

  area.addEventListener("input", (event) => {
    shift();
    number();
    mark();
    scroll();
    check();
    const typing = event.inputType === "insertText" || event.inputType === "deleteContentBackward";
    if (typing && (choices !== null || /^["\w$:]$/.test(event.data || ""))) complete(); else close();
  });
  area.addEventListener("scroll", () => { scroll(); if (choices !== null) place(); });
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  new ResizeObserver(scroll).observe(area);

  /* ---- links of the outline and of the list of problems */

  form.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-at]");
    if (!link) return;
    event.preventDefault();
    follow(link);
  });

  function follow(link) {
    const from = toBrowser(area.value, Number(link.dataset.at)), to = toBrowser(area.value, Number(link.dataset.to || link.dataset.at));
    area.focus();
    area.setSelectionRange(from, to);
    area.scrollTop = Math.max(0, (area.value.slice(0, from).split("\n").length - 5) * height());
  }

  /* Links to a problem have its path after #: go to the problem itself, or to the entry that contains it. `resource=`
     and a name is the entry of that name. */
  function goTo(hash) {
    const path = decodeURIComponent(hash.slice(1));
    if (path.startsWith("resource=")) {
      const named = $$("#outline a[data-at]").find((link) => link.textContent.trim() === path.slice(9));
      if (named) follow(named);
      return;
    }
    const matches = (link) => link.dataset.path && (path === link.dataset.path || path.startsWith(`${link.dataset.path}.`));
    const links = $$("a[data-at]", form).filter(matches).sort((a, b) => b.dataset.path.length - a.dataset.path.length);
    if (links.length) follow(links[0]);
  }

  /* ---- adding, and leaving */

  $("[name=resource]", form).addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // the first button of the form, which Enter would press, is the review
    form.requestSubmit($("[value=add]", form));
  });

  form.addEventListener("submit", async (event) => {
    if (!event.submitter || event.submitter.value !== "add") { leaving = true; return; }
    event.preventDefault();
    const error = $("[data-add-error]", form);
    const body = new URLSearchParams(new FormData(form, event.submitter));
    let answer;
    try {
      answer = await (await fetch(form.getAttribute("action"), { method: "POST", body, headers: { accept: "application/json" } })).json();
    } catch {
      answer = { error: "The cloud does not respond. Try again." };
    }
    error.textContent = answer.error || "";
    if (answer.error) return;
    replace(0, area.value.length, answer.text, toBrowser(answer.text, answer.start));
    area.scrollTop = Math.max(0, (answer.text.slice(0, area.selectionStart).split("\n").length - 5) * height());
    $("[name=resource]", form).value = "";
    check(true);
  });

  addEventListener("beforeunload", (event) => {
    if (!leaving && area.value !== saved) event.preventDefault();
  });
  addEventListener("pageshow", () => { leaving = false; });

  number();
  scroll();
  check(true);
  if (location.hash.length > 1) goTo(location.hash);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("#running a[href^='#']");
    if (!link) return;
    event.preventDefault();
    goTo(link.hash);
  });
})();
