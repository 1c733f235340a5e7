"use strict";
/* Forms that call a machine, such as STOP ALL: the outcome is shown in place. They work without this script, too. */
(() => {
  const { $, $$ } = page;

  for (const form of $$("form[data-call]")) form.addEventListener("submit", call);

  async function call(event) {
    event.preventDefault();
    const form = event.currentTarget;
    const output = $("output", form);
    const button = $("button:not([data-cancel])", form);
    const cancel = $("[data-cancel]", form);
    const stop = button.classList.contains("stop");
    const abort = new AbortController();
    const quit = () => abort.abort();
    if (!stop) button.disabled = true;
    if (cancel) { cancel.hidden = false; cancel.addEventListener("click", quit, { once: true }); }
    output.hidden = false;
    output.replaceChildren(part("span", "took", stop ? "stopping" : "running"));
    try {
      const response = await fetch(form.action, {
        method: "POST",
        headers: { accept: "application/json" },
        body: new URLSearchParams(new FormData(form)),
        signal: abort.signal,
      });
      const answer = await response.json();
      result(output, answer, stop);
    } catch (error) {
      const text = error.name === "AbortError" ? "cancelled" : "the server did not answer";
      result(output, { took: "", error: text });
    } finally {
      button.disabled = false;
      if (cancel) { cancel.hidden = true; cancel.removeEventListener("click", quit); }
    }
  }

  function result(output, { took, value, error }, stop) {
    const text = error ? "failed" : stop ? "stopped" : "done";
    output.replaceChildren(part("span", "took", took ? `${text} after ${took}` : text));
    if (error) {
      const note = part("div", "note is-unhealthy", "");
      note.append(part("p", "", error));
      output.append(note);
    } else if (value !== null && value !== undefined) {
      const text = part("pre", "", value);
      text.tabIndex = 0; // long ones scroll
      output.append(text);
    }
  }

  function part(tag, name, text) {
    const element = document.createElement(tag);
    element.className = name;
    element.textContent = text;
    return element;
  }
})();
